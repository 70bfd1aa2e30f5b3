from collections.abc import Mapping
from dataclasses import dataclass, replace

from holdfast.catalog.goodput import RecoveryStages
from holdfast.cli.planning.inputs.standing import StandingCost
from holdfast.cli.planning.options import Options
from holdfast.planner.actual import KnownValues, LearnedValues, PlanAgainstActual, compare
from holdfast.planner.advice import best_interval_s
from holdfast.planner.model import Checkpoints, Failures, Scenario, Strategy, strategy_at
from holdfast.planner.plans import Plan, make_plan

RARE_INTERVAL_S = 4 * 3600.0
"""Our assumption: a job that recovers from its peers still writes a checkpoint every four hours."""

STAGE_NAMES = ("detect", "replace", "resume")


@dataclass(frozen=True, kw_only=True)
class Inputs:
    title: str
    options: Options
    stages: Mapping[str, RecoveryStages]
    instances: int
    spares: int
    accelerators: int
    failures: Failures
    accelerator_hours: float
    usd_per_instance_hour: float | None
    price_note: str
    """Where the price comes from, or how to give one."""
    target: float
    interval_s: float | None
    """None: the best one for each size."""
    write_s: float
    known: KnownValues
    """What was given or measured. It enters every row of the plan that it is true of."""
    assumptions: list[str]
    origins: Mapping[str, str]
    """Where each input that advice may hang on comes from, in a few words."""
    standing: tuple[StandingCost, ...]
    """Monthly costs of the environment beside its nodes; empty without one."""
    standing_note: str
    """Region and date of their prices."""
    before: "Inputs | None" = None
    """The same before anything was learned from the events. None without events."""
    learned: LearnedValues | None = None

    @property
    def strategies(self) -> tuple[str, ...]:
        """All strategies, the plainest first; optional spares are a row of their own."""
        names = []
        for name in self.stages:
            names += [name, f"{name}+spares"] if self._has_two_steps(name) else [name]
        return tuple(names)

    @property
    def chosen(self) -> str:
        name = self.options.strategy
        return f"{name}+spares" if self._has_two_steps(name) else name

    def _has_two_steps(self, name: str) -> bool:
        """Return True if a strategy has rows without and with spares."""
        return self.stages[name].spares == "optional" and self.spares != 0

    def _spares(self, name: str) -> int:
        own, _, with_spares = name.partition("+")
        use = self.stages[own].spares
        if with_spares or (own == self.options.strategy and use != "optional"):
            return self.spares
        return max(1, self.spares) if use == "needed" else 0

    def scenario_at(self, name: str, instances: int) -> Scenario:
        strategy = self._strategy(name, instances)
        spares, failures = self._spares(name), self.failures
        if instances != self.instances:
            # Another size is our question, not the user's: it is no mistake that it cannot have as many.
            spares = min(spares, instances)
            failures = replace(failures, group_size=min(failures.group_size, instances))
        scenario = Scenario(
            instances=instances,
            spares=spares,
            failures=failures,
            strategy=strategy,
            checkpoints=Checkpoints(
                interval_s=RARE_INTERVAL_S if self.interval_s is None else self.interval_s, write_s=self.write_s
            ),
            accelerators_per_instance=self.accelerators,
        )
        if self.interval_s is None and strategy.redo == "checkpoint":
            return scenario.with_interval(_best_interval_s(scenario))
        return scenario

    def _strategy(self, name: str, instances: int) -> Strategy:
        """
        Strategy of a row with its known times.

        Times to detect and resume belong to the strategy, with and without spares.
        The time to replace belongs to the component that replaces, unless it is given.
        """
        own = name.partition("+")[0]
        chosen, stages = self.stages[self.options.strategy], self.stages[own]
        strategy = strategy_at(stages, instances=instances)
        if stages is chosen:
            strategy = self.known.applied_to(strategy)
        elif stages.replaced_by == chosen.replaced_by:
            measured = self.known.applied_to(strategy_at(chosen, instances=instances))
            strategy = self.known.as_replaced_in(strategy, measured=measured)
        elif self.options.replace_s is not None:
            strategy = replace(strategy, replace_s=self.options.replace_s)
        return replace(strategy, name=name, title=f"{strategy.title} + spares" if "+" in name else strategy.title)

    def plan(self, *, runs: int, seed: int) -> Plan:
        """Compute the plan. Raises: PlanError: a number is impossible."""
        options = self.options
        return make_plan(
            self.scenario_at,
            strategies=self.strategies,
            chosen=self.chosen,
            instances=self.instances,
            accelerator_hours=self.accelerator_hours,
            usd_per_instance_hour=self.usd_per_instance_hour,
            target=self.target,
            deadline_h=None if options.deadline_days is None else 24 * options.deadline_days,
            budget_usd=options.budget_usd,
            runs=runs,
            seed=seed,
        )

    def compare(self) -> PlanAgainstActual | None:
        """Plan before learning from events, beside them; None without events."""
        if self.learned is None or self.before is None:
            return None
        nine_of_ten = self.stages[self.options.strategy].percentile_90_at(self.instances)
        stages = {} if nine_of_ten is None else {name: getattr(nine_of_ten, f"{name}_s") for name in STAGE_NAMES}
        scenario = self.before.scenario_at(self.chosen, self.instances)
        return compare(scenario, self.learned, percentile_90_s=stages)


def _best_interval_s(scenario: Scenario) -> float:
    if scenario.failures_per_hour <= 0:
        return RARE_INTERVAL_S
    return max(1.0, best_interval_s(mtbf_h=scenario.mtbf_h, write_s=scenario.checkpoints.write_s))
