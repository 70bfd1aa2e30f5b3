"""
All strategies at all sizes, and the best of them for a deadline and a budget.

Answers are read from the table, so none is worse than a row.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from holdfast.planner.advice.checkpoints_and_spares import fewest
from holdfast.planner.model import Scenario, goodput, require

SIZES = tuple(sorted({2**power for power in range(15)} | {3 * 2**power for power in range(13)}))
"""Two for each doubling, up to 16,384 instances."""


@dataclass(frozen=True, kw_only=True)
class Way:
    strategy: str
    title: str
    instances: int
    spares: int
    goodput: float
    wall_h: float | None
    """None when training never ends."""
    instance_hours: float | None
    """What is paid for, spares included. None when training never ends."""
    cost_usd: float | None
    """None without a price, or when training never ends."""


@dataclass(frozen=True, kw_only=True)
class WaysAdvice:
    """All ways and the best of them; None without an answer."""

    table: tuple[Way, ...]
    deadline_h: float | None
    budget_usd: float | None
    fastest: Way | None
    """Whatever it costs."""
    cheapest: Way | None
    """The fewest instance-hours within deadline and budget, as far as they are given."""
    quickest: Way | None
    """The shortest time within both."""
    cheapest_in_time: Way | None
    """The fewest instance-hours within the deadline, at any cost."""
    quickest_in_budget: Way | None
    """The shortest time within the budget, also past the deadline."""


def way(scenario: Scenario, *, accelerator_hours: float, usd_per_instance_hour: float | None) -> Way:
    """Time and cost of the work on one cluster, spares included."""
    reached = goodput(scenario)
    wall_h = instance_hours = None
    if reached > 0:
        wall_h = accelerator_hours / (scenario.instances * scenario.accelerators_per_instance) / reached
        instance_hours = wall_h * (scenario.instances + scenario.spares)
    priced = usd_per_instance_hour is not None and instance_hours is not None
    return Way(
        strategy=scenario.strategy.name,
        title=scenario.strategy.title,
        instances=scenario.instances,
        spares=scenario.spares,
        goodput=reached,
        wall_h=wall_h,
        instance_hours=instance_hours,
        cost_usd=instance_hours * usd_per_instance_hour if priced else None,  # type: ignore[operator]
    )


def advise_ways(
    scenario_at: Callable[[str, int], Scenario],
    *,
    strategies: Sequence[str],
    instances: int,
    accelerator_hours: float,
    usd_per_instance_hour: float | None,
    deadline_h: float | None = None,
    budget_usd: float | None = None,
) -> WaysAdvice:
    """
    Find strategies and sizes that meet deadline and budget.

    Throughput is assumed to grow with the number of instances.

    Args:
        scenario_at: Scenario of a strategy, by name, at a size.
        instances: Planned size, which is in the table.
        accelerator_hours: Work in hours of one undisturbed accelerator.
        usd_per_instance_hour: Default: unknown; costs are None, and nothing is within a budget.
        deadline_h: Default: none
        budget_usd: Default: none

    Raises:
        PlanError: a number is impossible.
    """
    _check_limits(accelerator_hours, deadline_h, budget_usd)

    def at(strategy: str, size: int) -> Way:
        return way(
            scenario_at(strategy, size),
            accelerator_hours=accelerator_hours,
            usd_per_instance_hour=usd_per_instance_hour,
        )

    table: dict[tuple[str, int], Way] = {}
    for name in strategies:
        for size in sorted({*SIZES, instances}):
            table[name, size] = at(name, size)
        for size in _edges(name, table, at, deadline_h=deadline_h, budget_usd=budget_usd):
            table[name, size] = at(name, size)
    rows = tuple(sorted(table.values(), key=lambda each: (strategies.index(each.strategy), each.instances)))
    return best_of(rows, deadline_h=deadline_h, budget_usd=budget_usd)


def best_of(rows: tuple[Way, ...], *, deadline_h: float | None, budget_usd: float | None) -> WaysAdvice:
    ending = [each for each in rows if each.wall_h is not None]
    in_time = [each for each in ending if deadline_h is None or _within(each.wall_h, deadline_h)]
    in_budget = [each for each in ending if budget_usd is None or _within(each.cost_usd, budget_usd)]
    both = [each for each in in_time if each in in_budget]
    return WaysAdvice(
        table=rows,
        deadline_h=deadline_h,
        budget_usd=budget_usd,
        fastest=_quickest(ending),
        cheapest=_cheapest(both),
        quickest=_quickest(both),
        cheapest_in_time=_cheapest(in_time),
        quickest_in_budget=_quickest(in_budget),
    )


def _edges(
    name: str,
    table: dict[tuple[str, int], Way],
    at: Callable[[str, int], Way],
    *,
    deadline_h: float | None,
    budget_usd: float | None,
) -> list[int]:
    own = [each for (strategy, _), each in table.items() if strategy == name]
    found = []
    in_time = [each.instances for each in own if deadline_h is not None and _within(each.wall_h, deadline_h)]
    if in_time and deadline_h is not None:
        too_few = max((each.instances for each in own if each.instances < in_time[0]), default=0)
        found.append(fewest(lambda size: _within(at(name, size).wall_h, deadline_h), too_few + 1, in_time[0]))
    cheap = [each.instances for each in own if budget_usd is not None and _within(each.cost_usd, budget_usd)]
    if cheap and budget_usd is not None:
        too_many = min((each.instances for each in own if each.instances > cheap[-1]), default=cheap[-1] + 1)
        found.append(fewest(lambda size: not _within(at(name, size).cost_usd, budget_usd), cheap[-1] + 1, too_many) - 1)
    return found


def _cheapest(ways: Iterable[Way]) -> Way | None:
    return min(ways, key=lambda each: (each.instance_hours or 0.0, each.wall_h or 0.0), default=None)


def _quickest(ways: Iterable[Way]) -> Way | None:
    return min(ways, key=lambda each: (each.wall_h or 0.0, each.instance_hours or 0.0), default=None)


def _within(value: float | None, limit: float) -> bool:
    return value is not None and value <= limit


def _check_limits(accelerator_hours: float, deadline_h: float | None, budget_usd: float | None) -> None:
    for what, value, fix in (
        ("the work, in accelerator hours,", accelerator_hours, "count one accelerator for one hour as one"),
        ("the deadline, in hours,", deadline_h, "leave it out when there is none"),
        ("the budget, in dollars,", budget_usd, "leave it out when there is none"),
    ):
        require(value is None or (math.isfinite(value) and value > 0), what, value, "more than 0", fix)
