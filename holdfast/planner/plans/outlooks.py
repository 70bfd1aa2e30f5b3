"""
Plan of one cluster: each strategy by three models, advice, sensitivities, curves.

Pure: the caller provides rates, stages and a price.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from holdfast.planner.advice import (
    Elasticity,
    IntervalAdvice,
    SparesAdvice,
    SparesCost,
    WaysAdvice,
    advise_interval,
    advise_spares,
    advise_ways,
    cheapest_spares,
    elasticities,
    lost_per_work,
    spares_costs,
    way,
)
from holdfast.planner.model import (
    Scenario,
    Shares,
    Simulation,
    affordable_runs,
    first_order_goodput,
    goodput,
    shares,
    simulate_work,
)

CURVE_SIZES = (4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096)


@dataclass(frozen=True, kw_only=True)
class Outlook:
    """One strategy by three models. Hours and dollars are None if training never ends; dollars without a price."""

    strategy: str
    title: str
    instances: int
    spares: int
    minutes_per_failure: float
    """From a failure to running again with all that was lost done again, when no second failure comes."""
    first_order_goodput: float
    goodput: float
    simulation: Simulation | None
    """None when training never ends, or has too many failures to simulate."""
    shares: Shares
    wall_h: float | None
    lost_h: float | None
    cost_usd: float | None
    saves_h: float | None
    """Against the strategy before it."""
    saves_usd: float | None
    hangs_on: Elasticity | None
    """What the lost time hangs on most."""
    warning: str
    """Empty when there is none."""


@dataclass(frozen=True, kw_only=True)
class Curve:
    """Points of a plot; y may be None."""

    name: str
    points: tuple[tuple[float, float | None], ...]


@dataclass(frozen=True, kw_only=True)
class Plan:
    scenario: Scenario
    chosen: str
    """Name of the strategy that the advice is for."""
    accelerator_hours: float
    base_h: float
    """Hours that the work takes when nothing fails and no checkpoint is written."""
    mtbf_h: float | None
    """None when nothing fails."""
    outlooks: tuple[Outlook, ...]
    interval: IntervalAdvice
    spares: SparesAdvice
    spares_costs: tuple[SparesCost, ...]
    """With 0, 1, 2 ... spares, up to where none pays any more."""
    cheapest_spares: SparesCost | None
    """None when training never ends."""
    ways: WaysAdvice
    sensitivities: tuple[Elasticity, ...]
    """What the time that is lost with the chosen strategy hangs on, the strongest first."""
    goodput_by_size: tuple[Curve, ...]


def make_plan(
    scenario_at: Callable[[str, int], Scenario],
    *,
    strategies: Sequence[str],
    chosen: str,
    instances: int,
    accelerator_hours: float,
    usd_per_instance_hour: float | None = None,
    target: float = 0.95,
    deadline_h: float | None = None,
    budget_usd: float | None = None,
    runs: int = 1000,
    seed: int = 0,
) -> Plan:
    """
    Plan a job.

    Args:
        scenario_at: Scenario of a strategy, by name, at a size.
        strategies: The plainest first; each is compared with the previous one.
        chosen: Strategy to advise on.
        accelerator_hours: Work in hours of one undisturbed accelerator.
        usd_per_instance_hour: Default: unknown, and no dollars
        target: Goodput share. Default: 0.95
        deadline_h: Default: none
        budget_usd: Default: none
        runs: Simulated runs per strategy, fewer for long jobs. Default: 1000
        seed: Default: 0

    Raises:
        PlanError: a number is impossible.
    """
    scenario = scenario_at(chosen, instances)
    ways = advise_ways(
        scenario_at,
        strategies=strategies,
        instances=instances,
        accelerator_hours=accelerator_hours,
        usd_per_instance_hour=usd_per_instance_hour,
        deadline_h=deadline_h,
        budget_usd=budget_usd,
    )
    base_h = accelerator_hours / (scenario.instances * scenario.accelerators_per_instance)
    outlooks: list[Outlook] = []
    for name in strategies:
        before = outlooks[-1] if outlooks else None
        outlooks.append(
            _outlook(
                scenario_at(name, instances),
                before=before,
                base_h=base_h,
                usd_per_instance_hour=usd_per_instance_hour,
                runs=runs,
                seed=seed,
            )
        )
    costs = spares_costs(scenario, work_h=base_h)
    return Plan(
        scenario=scenario,
        chosen=chosen,
        accelerator_hours=accelerator_hours,
        base_h=base_h,
        mtbf_h=scenario.mtbf_h if math.isfinite(scenario.mtbf_h) else None,
        outlooks=tuple(outlooks),
        interval=advise_interval(scenario),
        spares=advise_spares(scenario, target=target),
        spares_costs=costs,
        cheapest_spares=cheapest_spares(costs),
        ways=ways,
        sensitivities=elasticities(lost_per_work, scenario),
        goodput_by_size=tuple(_curve(name, scenario_at, instances) for name in strategies),
    )


def _outlook(
    scenario: Scenario,
    *,
    before: Outlook | None,
    base_h: float,
    usd_per_instance_hour: float | None,
    runs: int,
    seed: int,
) -> Outlook:
    reached = goodput(scenario)
    option = way(
        scenario,
        accelerator_hours=base_h * scenario.instances * scenario.accelerators_per_instance,
        usd_per_instance_hour=usd_per_instance_hour,
    )
    simulation = None
    if option.wall_h is not None:
        affordable = affordable_runs(scenario, wall_h=option.wall_h, runs=runs)
        if affordable:
            simulation = simulate_work(scenario, work_h=base_h, runs=affordable, seed=seed)
    sensitivities = elasticities(lost_per_work, scenario)
    return Outlook(
        strategy=scenario.strategy.name,
        title=scenario.strategy.title,
        instances=scenario.instances,
        spares=scenario.spares,
        minutes_per_failure=60 * _recovery_h(scenario),
        first_order_goodput=first_order_goodput(scenario),
        goodput=reached,
        simulation=simulation,
        shares=shares(scenario),
        wall_h=option.wall_h,
        lost_h=None if option.wall_h is None else option.wall_h - base_h,
        cost_usd=option.cost_usd,
        saves_h=_difference(before.wall_h if before else None, option.wall_h),
        saves_usd=_difference(before.cost_usd if before else None, option.cost_usd),
        hangs_on=sensitivities[0] if sensitivities and scenario.failures_per_hour > 0 else None,
        warning=_warning(scenario, reached),
    )


def _recovery_h(scenario: Scenario) -> float:
    strategy = scenario.strategy
    waits = strategy.waits_for_replacement and scenario.spares == 0
    return (strategy.out_h if waits else strategy.detect_h) + strategy.back_h


def _warning(scenario: Scenario, reached: float) -> str:
    recovery_h = _recovery_h(scenario)
    if reached == 0:
        return (
            f"training never ends: a recovery takes {recovery_h:.2g} h and failures come every "
            f"{scenario.mtbf_h:.2g} h; use fewer instances or recover faster"
        )
    if recovery_h > scenario.mtbf_h:
        return (
            f"a recovery takes {recovery_h:.2g} h and failures come every {scenario.mtbf_h:.2g} h: "
            f"most recoveries fail too, and the first-order figure is far too optimistic"
        )
    return ""


def _difference(before: float | None, after: float | None) -> float | None:
    return None if before is None or after is None else before - after


def _curve(name: str, scenario_at: Callable[[str, int], Scenario], instances: int) -> Curve:
    sizes = sorted({*CURVE_SIZES, instances})
    return Curve(
        name=scenario_at(name, instances).strategy.title,
        points=tuple((float(size), goodput(scenario_at(name, size))) for size in sizes),
    )
