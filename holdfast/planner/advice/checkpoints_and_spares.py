"""Advice on checkpoint interval and spares, with the most sensitive input."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from holdfast.planner.advice.sensitivity import Elasticity, strongest
from holdfast.planner.model import HOUR_S, Scenario, check_target, goodput


@dataclass(frozen=True, kw_only=True)
class IntervalAdvice:
    """Checkpoint intervals in seconds of training; None if only a step is redone, or nothing fails."""

    young_s: float | None
    """sqrt(2 * write * MTBF)."""
    daly_s: float | None
    """Daly's higher-order estimate."""
    best_s: float | None
    """Where the renewal model has its maximum."""
    goodput_given: float
    goodput_best: float
    hangs_on: Elasticity | None


@dataclass(frozen=True, kw_only=True)
class SparesAdvice:
    target: float
    spares: int | None
    """None when no number of spares reaches it."""
    goodput: float
    """With that many spares, or with as many as can be."""
    by_spares: tuple[tuple[int, float], ...]
    """Goodput by number of spares, for a plot."""
    hangs_on: Elasticity | None


def young_interval_s(*, mtbf_h: float, write_s: float) -> float:
    """Young, Communications of the ACM 17(9), 1974."""
    return math.sqrt(2 * write_s * mtbf_h * HOUR_S)


def daly_interval_s(*, mtbf_h: float, write_s: float) -> float:
    """Daly, Future Generation Computer Systems 22(3), 2006, equation 37."""
    mtbf_s = mtbf_h * HOUR_S
    if write_s >= 2 * mtbf_s:
        return mtbf_s
    ratio = write_s / (2 * mtbf_s)
    return math.sqrt(2 * write_s * mtbf_s) * (1 + math.sqrt(ratio) / 3 + ratio / 9) - write_s


def best_interval_s(*, mtbf_h: float, write_s: float) -> float:
    """Interval t with the highest t / (exp(L (t + c)) - 1), where (1 - L t) exp(L t) = exp(-L c)."""
    write = write_s / HOUR_S / mtbf_h
    low, high = 0.0, math.nextafter(1.0, 0.0)
    for _ in range(100):
        middle = (low + high) / 2
        if math.log1p(-middle) + middle > -write:
            low = middle
        else:
            high = middle
    return (low + high) / 2 * mtbf_h * HOUR_S


def advise_interval(scenario: Scenario) -> IntervalAdvice:
    given, mtbf_h, write_s = goodput(scenario), scenario.mtbf_h, scenario.checkpoints.write_s
    if scenario.strategy.redo == "step" or not math.isfinite(mtbf_h) or write_s == 0:
        return IntervalAdvice(
            young_s=None, daly_s=None, best_s=None, goodput_given=given, goodput_best=given, hangs_on=None
        )
    best_s = best_interval_s(mtbf_h=mtbf_h, write_s=write_s)
    return IntervalAdvice(
        young_s=young_interval_s(mtbf_h=mtbf_h, write_s=write_s),
        daly_s=daly_interval_s(mtbf_h=mtbf_h, write_s=write_s),
        best_s=best_s,
        goodput_given=given,
        goodput_best=goodput(scenario.with_interval(best_s)),
        hangs_on=strongest(lambda s: best_interval_s(mtbf_h=s.mtbf_h, write_s=s.checkpoints.write_s), scenario),
    )


def advise_spares(scenario: Scenario, *, target: float) -> SparesAdvice:
    """Fewest spares that reach ``target``, a share from 0 to 1. Raises: PlanError: no such share."""
    check_target(target)
    most = scenario.instances
    reached = goodput(scenario.with_spares(most))
    spares: int | None = None
    if reached >= target:
        spares = fewest(lambda count: goodput(scenario.with_spares(count)) >= target, 0, most)
        reached = goodput(scenario.with_spares(spares))
    shown = min(most, max(4, 2 * (spares or 2), scenario.spares + 1, 8))
    return SparesAdvice(
        target=target,
        spares=spares,
        goodput=reached,
        by_spares=tuple(
            (count, goodput(scenario.with_spares(count))) for count in sorted({*_thinned(0, shown), scenario.spares})
        ),
        hangs_on=strongest(lost_per_work, scenario.with_spares(spares if spares is not None else most)),
    )


def lost_per_work(scenario: Scenario) -> float:
    """Lost hours per hour of undisturbed training; infinite if training never ends."""
    reached = goodput(scenario)
    return 1.0 / reached - 1.0 if reached > 0 else math.inf


def fewest(fits: Callable[[int], bool], low: int, high: int) -> int:
    """Smallest number for which a monotone condition holds; ``high`` if none below does."""
    while low < high:
        middle = (low + high) // 2
        if fits(middle):
            high = middle
        else:
            low = middle + 1
    return low


def _thinned(first: int, last: int) -> Sequence[int]:
    step = max(1, (last - first) // 40)
    return sorted({*range(first, last + 1, step), last})
