"""
From an environment file, options and data files to the numbers of a plan; whatever was assumed is written down.

Options win over the environment file, and both over data. There is no price unless one is asked for.
"""

import difflib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from holdfast.catalog import instance_types
from holdfast.catalog.goodput import FailureRates, RecoveryStages, failure_rates, prices, recovery_stages
from holdfast.cli.terminal import CommandError
from holdfast.environments import environment_file
from holdfast.planner.actual import Known, PlanAgainstActual, calibrate, compare, known
from holdfast.planner.advice import best_interval_s
from holdfast.planner.model import (
    ASSUMED_WRITE_S,
    Checkpoints,
    Failures,
    PlanError,
    Scenario,
    Strategy,
    assumed_rate,
    strategy_at,
)
from holdfast.planner.plans import Plan, make_plan
from holdfast_common import Event

if TYPE_CHECKING:
    from holdfast.config import Environment, InstanceGroup

CALM_DAYS = 90
"""Our choice: the job that is planned when no work is given."""

RARE_INTERVAL_S = 4 * 3600.0
"""Our assumption: a job that recovers from its peers still writes a checkpoint every four hours."""

TARGET_PERCENT = 95.0
"""Our choice: what checkpointless training is published to reach on thousands of accelerators."""

STAGE_NAMES = ("detect", "replace", "resume")

ASSUMED_ACCELERATOR, ASSUMED_COUNT = "H100", 8

_T = TypeVar("_T")


@dataclass(frozen=True, kw_only=True)
class Options:
    """What the user gave; None where nothing."""

    environment: str | None = None
    group: str | None = None
    instances: int | None = None
    instance_type: str | None = None
    spares: int | None = None
    gpu_hours: float | None = None
    failure_rate_percent: float | None = None
    group_size: int = 1
    group_share_percent: float = 0.0
    strategy: str = "checkpoints"
    checkpoint_interval_s: float | None = None
    checkpoint_write_s: float | None = None
    detect_s: float | None = None
    replace_s: float | None = None
    resume_s: float | None = None
    target_percent: float | None = None
    deadline_days: float | None = None
    budget_usd: float | None = None
    price: str | None = None
    training_plan_fee_usd: float | None = None
    training_plan_instance_hours: float | None = None
    rates_file: Path | None = None
    stages_file: Path | None = None
    prices_file: Path | None = None


@dataclass(frozen=True, kw_only=True)
class Inputs:
    """All that a plan needs."""

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
    known: Known
    """What was given or measured. It enters every row of the plan that it is true of."""
    assumptions: list[str]
    origins: Mapping[str, str]
    """Where each input that advice may hang on comes from, in a few words."""
    before: "Inputs | None" = None
    """The same before anything was learned from the events. None without events."""
    events: list[Event] | None = None

    @property
    def strategies(self) -> tuple[str, ...]:
        """Every strategy, the plainest first; spares, where they are a matter of choice, are a step of their own."""
        names = []
        for name in self.stages:
            names += [name, f"{name}+spares"] if self._has_two_steps(name) else [name]
        return tuple(names)

    @property
    def chosen(self) -> str:
        name = self.options.strategy
        return f"{name}+spares" if self._has_two_steps(name) else name

    def _has_two_steps(self, name: str) -> bool:
        """Whether a strategy is shown without the spares first, and then with them."""
        return self.stages[name].spares == "optional" and self.spares != 0

    def _spares(self, name: str) -> int:
        own, _, with_spares = name.partition("+")
        use = self.stages[own].spares
        if with_spares or (own == self.options.strategy and use != "optional"):
            return self.spares
        return max(1, self.spares) if use == "needed" else 0

    def scenario_at(self, name: str, instances: int) -> Scenario:
        """The scenario of a strategy on so many instances."""
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
            checkpoints=Checkpoints(interval_s=_or(self.interval_s, RARE_INTERVAL_S), write_s=self.write_s),
            accelerators_per_instance=self.accelerators,
        )
        if self.interval_s is None and strategy.redo == "checkpoint":
            return scenario.with_interval(_best_interval_s(scenario))
        return scenario

    def _strategy(self, name: str, instances: int) -> Strategy:
        """
        With what is known in it, as far as it is true of this row.

        How long it takes to notice and to resume is a matter of the strategy: it holds with spares and without them.
        How long it takes until a new instance is there is a matter of who brings it.
        """
        own = name.partition("+")[0]
        chosen, stages = self.stages[self.options.strategy], self.stages[own]
        strategy = strategy_at(stages, instances=instances)
        if stages is chosen:
            strategy = self.known.applied_to(strategy)
        elif stages.replaced_by == chosen.replaced_by:
            measured = self.known.applied_to(strategy_at(chosen, instances=instances))
            strategy = self.known.as_replaced_in(strategy, measured=measured)
        return replace(strategy, name=name, title=f"{strategy.title} + spares" if "+" in name else strategy.title)

    def plan(self, *, runs: int, seed: int) -> Plan:
        """Raises: PlanError when a number is impossible."""
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
        """The plan as it was before anything was learned from the events, beside them. None without events."""
        if self.events is None or self.before is None:
            return None
        nine_of_ten = self.stages[self.options.strategy].percentile_90_at(self.instances)
        stages = {} if nine_of_ten is None else {name: getattr(nine_of_ten, f"{name}_s") for name in STAGE_NAMES}
        scenario = self.before.scenario_at(self.chosen, self.instances)
        return compare(scenario, self.events, percentile_90_s=stages)


def gather(options: Options, *, events: list[Event] | None) -> Inputs:
    """
    Raises:
        CommandError: something that is needed is not there, or has the wrong form.
        PlanError: a number is impossible.
    """
    environment = None if options.environment is None else _environment(options.environment)
    group = None if environment is None else _training_group(environment, options.group)
    stages = read_stages(options.stages_file)
    if options.strategy not in stages:
        raise CommandError(f"there is no strategy '{options.strategy}'; allowed: {', '.join(stages)}")
    instances = _or(options.instances, group.instance_count if group else None)
    if instances is None:
        raise CommandError("nothing says how many instances train; name an environment, or give --instances")
    notes: list[str] = []
    instance_type = options.instance_type or (_type_of(group) if group else None)
    accelerator, count = _accelerator(instance_type, notes)
    usd, price_note = _price(options, instance_type=instance_type)
    expected = None if environment is None else environment.goodput
    interval_s = _or(options.checkpoint_interval_s, expected.checkpoint_interval_s if expected else None)
    target = _or(options.target_percent, expected.target_percent if expected else None)
    notes.append(f"goodput target {_or(target, TARGET_PERCENT):g} %" + ("" if target is not None else ": our choice"))
    given = Known(
        per_instance_hour=None if options.failure_rate_percent is None else options.failure_rate_percent / 100,
        detect_s=options.detect_s,
        replace_s=options.replace_s,
        resume_s=options.resume_s,
        write_s=options.checkpoint_write_s,
    )
    failures, counted = _failures(options, accelerator=accelerator, notes=notes)
    inputs = Inputs(
        title=environment.name if environment else f"{instances} instances",
        options=options,
        stages=stages,
        instances=instances,
        spares=_or(_or(options.spares, group.spare_count if group else None), 0),
        accelerators=count,
        failures=failures,
        accelerator_hours=_work(options, instances=instances, accelerators=count, notes=notes),
        usd_per_instance_hour=usd,
        price_note=price_note,
        target=_or(target, TARGET_PERCENT) / 100,
        interval_s=interval_s,
        write_s=_or(options.checkpoint_write_s, ASSUMED_WRITE_S),
        known=given,
        assumptions=notes,
        origins=_origins(given, Known(), counted=counted, interval_given=interval_s is not None),
    )
    _note_recovery(inputs, notes)
    if events is None:
        return inputs
    measured = known(calibrate(events))
    notes.append("what the events tell takes the place of what was assumed, in every row that it is true of")
    both = measured.but(given)
    return replace(
        inputs,
        failures=replace(failures, per_instance_hour=_or(both.per_instance_hour, failures.per_instance_hour)),
        write_s=_or(both.write_s, inputs.write_s),
        known=both,
        origins=_origins(given, measured, counted=counted, interval_given=interval_s is not None),
        before=inputs,
        events=events,
    )


def environment_name(name: str) -> str:
    """The name that an environment has, given in environments/ or by its path."""
    return _environment(name).name


def read_rates(path: Path | None) -> FailureRates:
    return _read("--rates-file", failure_rates, path)


def read_stages(path: Path | None) -> Mapping[str, RecoveryStages]:
    return _read("--stages-file", recovery_stages, path)


def _read(option: str, reader: Callable[[Path | None], _T], path: Path | None) -> _T:
    try:
        return reader(path)
    except (OSError, ValueError) as error:
        raise CommandError(f"{option} {path}: {error}") from None


def _or(value: _T | None, default: _T) -> _T:
    return default if value is None else value


def _environment(name: str) -> "Environment":
    from holdfast.config import EnvironmentFileError, load

    try:
        return load(environment_file(name))
    except EnvironmentFileError as error:
        raise CommandError(str(error)) from None


def _training_group(environment: "Environment", name: str | None) -> "InstanceGroup":
    """The group that is named, or the one with the most accelerators."""
    groups = environment.cluster.instance_groups
    if name is not None:
        for group in groups:
            if group.name == name:
                return group
        raise CommandError(f"there is no instance group '{name}'; allowed: {', '.join(each.name for each in groups)}")
    known = instance_types()

    def accelerators(group: "InstanceGroup") -> int:
        kind = known.get(_type_of(group) or "")
        return group.instance_count * (kind.accelerators if kind else 0)

    return max(groups, key=lambda group: (accelerators(group), group.instance_count))


def _type_of(group: "InstanceGroup") -> str | None:
    return group.instance_type or (group.instance_types[0] if group.instance_types else None)


def _accelerator(instance_type: str | None, notes: list[str]) -> tuple[str, int]:
    if instance_type is None:
        notes.append(f"{ASSUMED_COUNT} {ASSUMED_ACCELERATOR} per instance: assumed; give --instance-type")
        return ASSUMED_ACCELERATOR, ASSUMED_COUNT
    kind = instance_types().get(instance_type)
    if kind is None:
        close = difflib.get_close_matches(instance_type, instance_types(), n=3)
        raise CommandError(
            f"there is no instance type '{instance_type}' in HyperPod; allowed: "
            f"{', '.join(close) or 'the types of the HyperPod documentation, with the prefix ml.'}"
        )
    return kind.accelerator, max(1, kind.accelerators)


def _failures(options: Options, *, accelerator: str, notes: list[str]) -> tuple[Failures, str]:
    """How instances fail, and whose failures were counted for it."""
    counted = "given"
    if options.failure_rate_percent is not None:
        notes.append(f"failure rate {options.failure_rate_percent:g} % per instance-hour: given")
        rate = options.failure_rate_percent / 100
    else:
        assumed = assumed_rate(read_rates(options.rates_file), accelerator=accelerator)
        seen = assumed.estimate
        rate = seen.per_instance_hour
        runs = ", ".join(f"{row.name} ({row.date})" for row in assumed.observations)
        stands_in = f"; {assumed.accelerator} stands in for {assumed.stands_in_for}" if assumed.stands_in_for else ""
        notes.append(
            f"failure rate {rate:.4%} per instance-hour, 95 % interval {seen.low:.4%} to {seen.high:.4%}: "
            f"{seen.failures} failures in {seen.instance_hours:,.0f} instance-hours of {runs}{stands_in}"
        )
        counted = f"assumed: {rate:.4%}, counted on {', '.join(row.name for row in assumed.observations)}"
    failures = Failures(
        per_instance_hour=rate, group_size=options.group_size, group_share=options.group_share_percent / 100
    )
    return failures, counted


def _origins(given: Known, measured: Known, *, counted: str, interval_given: bool) -> dict[str, str]:
    """Where each input comes from, by the names that sensitivities have for them."""
    published = "assumed: as AWS published it"
    names = {
        "failure rate": ("per_instance_hour", counted),
        "time to detect": ("detect_s", published),
        "time to replace": ("replace_s", published),
        "time to resume": ("resume_s", published),
        "time to write a checkpoint": ("write_s", f"assumed: {ASSUMED_WRITE_S:g} s"),
    }
    origins = {"share of group failures": "given", "checkpoint interval": "given" if interval_given else "our choice"}
    for name, (field, otherwise) in names.items():
        known_from = "given" if getattr(given, field) is not None else "measured"
        origins[name] = known_from if getattr(measured.but(given), field) is not None else otherwise
    return origins


def _work(options: Options, *, instances: int, accelerators: int, notes: list[str]) -> float:
    if options.gpu_hours is not None:
        return options.gpu_hours
    notes.append(f"work of {CALM_DAYS} undisturbed days: assumed; give --gpu-hours")
    # An impossible number of instances is refused later, with words of its own.
    return float(max(1, instances) * accelerators * CALM_DAYS * 24)


def _price(options: Options, *, instance_type: str | None) -> tuple[float | None, str]:
    """Dollars per instance-hour and where they come from, or None and how to give them."""
    fee, hours = options.training_plan_fee_usd, options.training_plan_instance_hours
    if (fee is None) != (hours is None):
        raise CommandError("a training plan needs both --training-plan-fee and --training-plan-hours")
    if fee is not None and hours is not None:
        if options.price is not None:
            raise CommandError("--price and --training-plan-fee are two prices for the same; give one of them")
        if fee < 0 or hours <= 0:
            raise PlanError(
                f"the training plan is ${fee:g} for {hours:g} instance-hours; allowed: 0 or more for more than 0; "
                f"give the upfront fee of the offering, and its instances times its hours"
            )
        return fee / hours, f"training plan: ${fee:,.0f} for {hours:,.0f} instance-hours"
    if options.price is None:
        return None, (
            "no price: give --price with dollars per instance-hour, --price ec2-on-demand for EC2's list as a proxy, "
            "or --training-plan-fee and --training-plan-hours"
        )
    try:
        usd = float(options.price)
    except ValueError:
        return _offer(options.price, instance_type=instance_type, path=options.prices_file)
    if not 0 <= usd < float("inf"):
        raise PlanError(f"the price is {options.price}; allowed: 0 or more; give dollars per instance-hour")
    return usd, f"${usd:,.2f} per instance-hour: given"


def _offer(name: str, *, instance_type: str | None, path: Path | None) -> tuple[float, str]:
    rows = _read("--prices-file", prices, path)
    offers = sorted({row.offer for row in rows})
    if name not in offers:
        raise CommandError(f"the price is '{name}'; allowed: dollars per instance-hour, or one of {', '.join(offers)}")
    for row in rows:
        if row.offer == name and row.instance_type == instance_type:
            proxy, usd = f", a proxy ({row.note})" if row.proxy else "", row.usd_per_instance_hour
            return usd, f"${usd:,.2f} per instance-hour in {row.region} on {row.date}{proxy}: {row.source}"
    known = ", ".join(row.instance_type for row in rows if row.offer == name)
    raise CommandError(
        f"offer '{name}' has no price for {instance_type or 'an unnamed instance type'}; it has {known}; "
        f"give --price in dollars per instance-hour"
    )


def _best_interval_s(scenario: Scenario) -> float:
    """The interval that costs least, at least a second; a rare one when nothing fails."""
    if scenario.failures_per_hour <= 0:
        return RARE_INTERVAL_S
    return max(1.0, best_interval_s(mtbf_h=scenario.mtbf_h, write_s=scenario.checkpoints.write_s))


def _note_recovery(inputs: Inputs, notes: list[str]) -> None:
    options = inputs.options
    notes.extend(f"{each.title}: {each.note}; {each.source}, {each.date}" for each in inputs.stages.values())
    if options.checkpoint_write_s is None:
        notes.append(f"writing a checkpoint stops training for {ASSUMED_WRITE_S:g} s: assumed; give --checkpoint-write")
    if inputs.interval_s is None:
        notes.append(
            f"checkpoint interval: the one that costs least; every {RARE_INTERVAL_S / 3600:g} h where only a step is "
            f"done again; give --checkpoint-interval"
        )
    notes.append("throughput grows with the number of instances; failures strike at a constant rate, independently")
