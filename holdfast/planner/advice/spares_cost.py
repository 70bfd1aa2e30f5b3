"""Spares that pay: idle hours against saved hours."""

from collections.abc import Iterator
from dataclasses import dataclass

from holdfast.planner.advice.checkpoints_and_spares import fewest
from holdfast.planner.model import Scenario, goodput


@dataclass(frozen=True, kw_only=True)
class SparesCost:
    spares: int
    goodput: float
    wall_h: float | None
    """None when training never ends."""
    idle_h: float | None
    """Instance-hours that spares stand idle."""
    saved_h: float | None
    """Instance-hours that those that train are needed for less than without a spare. None if that never ends."""
    paid_h: float | None
    """Instance-hours in all."""


def spares_costs(scenario: Scenario, *, work_h: float) -> tuple[SparesCost, ...]:
    """
    Cost of ``work_h`` undisturbed hours with 0, 1, 2 ... spares, until no more can pay.

    Goodput is bounded by that with as many spares as instances; once the cost at that bound exceeds the minimum, more
    spares only add cost. Numbers with endless training are left out, except 0, 1 and the scenario's own.
    """
    return tuple(_until_none_pays(scenario, work_h))


def cheapest_spares(costs: tuple[SparesCost, ...]) -> SparesCost | None:
    """Number with the lowest cost; None if training never ends."""
    return min((each for each in costs if each.paid_h is not None), key=lambda each: each.paid_h or 0.0, default=None)


def _until_none_pays(scenario: Scenario, work_h: float) -> Iterator[SparesCost]:
    at_best = goodput(scenario.with_spares(scenario.instances))
    alone_h: float | None = None
    smallest = float("inf")
    first = fewest(lambda spares: goodput(scenario.with_spares(spares)) > 0, 0, scenario.instances)
    for spares in sorted({0, 1, scenario.spares, *range(first, scenario.instances + 1)}):
        count = scenario.instances + spares
        if spares > max(scenario.spares, 1) and (at_best <= 0 or work_h / at_best * count >= smallest):
            return
        reached = goodput(scenario.with_spares(spares))
        wall_h = work_h / reached if reached > 0 else None
        if spares == 0:
            alone_h = wall_h
        if wall_h is not None:
            smallest = min(smallest, wall_h * count)
        yield SparesCost(
            spares=spares,
            goodput=reached,
            wall_h=wall_h,
            idle_h=None if wall_h is None else wall_h * spares,
            saved_h=None if wall_h is None or alone_h is None else (alone_h - wall_h) * scenario.instances,
            paid_h=None if wall_h is None else wall_h * count,
        )
