"""What to do about it: checkpoint interval, spares, cluster size. Each with the input that it hangs on most."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from holdfast.planner._errors import require
from holdfast.planner._renewal import goodput
from holdfast.planner._scenario import HOUR_S, Scenario
from holdfast.planner._sensitivity import Elasticity, strongest

MOST_INSTANCES_CONSIDERED = 16_384


@dataclass(frozen=True, kw_only=True)
class IntervalAdvice:
    """Checkpoint intervals in seconds of training. None where only a step is ever done again, or nothing fails."""

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
    """The fewest spares that reach a goodput."""

    target: float
    spares: int | None
    """None when no number of spares reaches it."""
    goodput: float
    """With that many spares, or with as many as can be."""
    by_spares: tuple[tuple[int, float], ...]
    """Goodput by number of spares, for a plot."""
    hangs_on: Elasticity | None


@dataclass(frozen=True, kw_only=True)
class SizeOption:
    """One cluster size for the same work."""

    instances: int
    goodput: float
    wall_h: float | None
    """None when training never ends."""
    cost_usd: float | None
    """None without a price, or when training never ends."""


@dataclass(frozen=True, kw_only=True)
class SizeAdvice:
    """Cluster sizes against a deadline and a budget."""

    options: tuple[SizeOption, ...]
    fastest: SizeOption | None
    smallest_in_time: SizeOption | None
    """None without a deadline, or when no size meets it."""
    largest_in_budget: SizeOption | None
    """None without a budget or a price, or when no size stays within it."""
    in_both: bool | None
    """Whether one size does both; None unless both were asked for."""
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
    """
    The interval t with the highest t / (exp(L (t + c)) - 1), where (1 - L t) exp(L t) = exp(-L c).

    How long a recovery takes does not matter to it.
    """
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
    """Compare the interval of a scenario with the best one."""
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
    """
    The fewest spares with which goodput reaches ``target``, a share between 0 and 1.

    Raises:
        PlanError: the target is no such share.
    """
    require(
        0 < target < 1, "the goodput target", f"{target:.4g}", "more than 0 and less than 1 (100 %)", "give a share"
    )
    most = scenario.instances
    reached = goodput(scenario.with_spares(most))
    spares: int | None = None
    if reached >= target:
        spares = _fewest(lambda count: goodput(scenario.with_spares(count)) >= target, 0, most)
        reached = goodput(scenario.with_spares(spares))
    shown = min(most, max(4, 2 * (spares or 2), scenario.spares + 1, 8))
    return SparesAdvice(
        target=target,
        spares=spares,
        goodput=reached,
        by_spares=tuple((count, goodput(scenario.with_spares(count))) for count in _thinned(0, shown)),
        hangs_on=strongest(lost_per_work, scenario.with_spares(spares if spares is not None else most)),
    )


def advise_size(
    scenario_at: Callable[[int], Scenario],
    *,
    accelerator_hours: float,
    usd_per_instance_hour: float | None,
    deadline_h: float | None = None,
    budget_usd: float | None = None,
) -> SizeAdvice:
    """
    Which number of instances does the work in time and within the budget, if throughput grows with their number.

    Args:
        scenario_at: The scenario on so many instances.
        accelerator_hours: The work, in hours of one undisturbed accelerator.
        usd_per_instance_hour: Default: none is known, and costs are None.
        deadline_h: Hours until it has to be done. Default: none
        budget_usd: Default: none

    Raises:
        PlanError: a number is impossible.
    """
    _check_limits(accelerator_hours, deadline_h, budget_usd)

    def option(instances: int) -> SizeOption:
        return size_option(
            scenario_at(instances), accelerator_hours=accelerator_hours, usd_per_instance_hour=usd_per_instance_hour
        )

    options = tuple(option(2**power) for power in range(MOST_INSTANCES_CONSIDERED.bit_length()))
    ending = [each for each in options if each.wall_h is not None]
    fastest = min(ending, key=lambda each: each.wall_h or 0.0, default=None)
    in_time, in_budget = None, None
    if fastest is not None and deadline_h is not None and _within(fastest.wall_h, deadline_h):
        in_time = option(_fewest(lambda count: _within(option(count).wall_h, deadline_h), 1, fastest.instances))
    affordable = [each for each in options if budget_usd is not None and _within(each.cost_usd, budget_usd)]
    if affordable and budget_usd is not None:
        largest = affordable[-1].instances
        beyond = _fewest(lambda count: not _within(option(count).cost_usd, budget_usd), largest + 1, 2 * largest)
        in_budget = option(beyond - 1)
    both = None
    if deadline_h is not None and budget_usd is not None and usd_per_instance_hour is not None:
        both = in_time is not None and _within(in_time.cost_usd, budget_usd)
    chosen = in_time or in_budget or fastest
    return SizeAdvice(
        options=options,
        fastest=fastest,
        smallest_in_time=in_time,
        largest_in_budget=in_budget,
        in_both=both,
        hangs_on=None if chosen is None else strongest(lost_per_work, scenario_at(chosen.instances)),
    )


def size_option(scenario: Scenario, *, accelerator_hours: float, usd_per_instance_hour: float | None) -> SizeOption:
    """Time and cost of the work on one cluster; spares are paid for as well."""
    reached = goodput(scenario)
    wall_h = None
    cost = None
    if reached > 0:
        wall_h = accelerator_hours / (scenario.instances * scenario.accelerators_per_instance) / reached
        if usd_per_instance_hour is not None:
            cost = wall_h * (scenario.instances + scenario.spares) * usd_per_instance_hour
    return SizeOption(instances=scenario.instances, goodput=reached, wall_h=wall_h, cost_usd=cost)


def lost_per_work(scenario: Scenario) -> float:
    """Hours lost per hour of undisturbed training; infinite when it never ends."""
    reached = goodput(scenario)
    return 1.0 / reached - 1.0 if reached > 0 else math.inf


def _within(value: float | None, limit: float) -> bool:
    return value is not None and value <= limit


def _check_limits(accelerator_hours: float, deadline_h: float | None, budget_usd: float | None) -> None:
    for what, value, fix in (
        ("the work, in accelerator hours,", accelerator_hours, "count one accelerator for one hour as one"),
        ("the deadline, in hours,", deadline_h, "leave it out when there is none"),
        ("the budget, in dollars,", budget_usd, "leave it out when there is none"),
    ):
        require(value is None or (math.isfinite(value) and value > 0), what, value, "more than 0", fix)


def _fewest(fits: Callable[[int], bool], low: int, high: int) -> int:
    """The smallest number that fits, if ever more do; ``high`` when none below it does."""
    while low < high:
        middle = (low + high) // 2
        if fits(middle):
            high = middle
        else:
            low = middle + 1
    return low


def _thinned(first: int, last: int) -> Sequence[int]:
    """At most some forty numbers from first to last."""
    step = max(1, (last - first) // 40)
    return sorted({*range(first, last + 1, step), last})
