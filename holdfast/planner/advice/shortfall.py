"""Settings that keep a cluster from its goodput target, for ``holdfast check``."""

from dataclasses import dataclass
from typing import Literal

from holdfast.planner.advice.checkpoints_and_spares import advise_interval, advise_spares
from holdfast.planner.model import Scenario, check_target, goodput


@dataclass(frozen=True, kw_only=True)
class Shortfall:
    setting: Literal["spare_count", "checkpoint_interval_s", "target_percent"]
    given: float
    needed: float | None
    """None when no value of this setting is enough."""
    message: str
    fix: str


def shortfalls(scenario: Scenario, *, target: float) -> tuple[Shortfall, ...]:
    """
    Return the changes that let goodput reach ``target``, a share from 0 to 1; empty if none is needed.

    One setting if one suffices, two if both are needed, else the target itself.

    Raises:
        PlanError: no such share.
    """
    check_target(target)
    reached = goodput(scenario)
    if reached >= target:
        return ()
    expected = f"goodput is expected to be {reached:.1%}, below the target of {target:.1%}"
    interval = advise_interval(scenario)
    if interval.best_s is not None and interval.goodput_best >= target:
        return (_interval(scenario, interval.best_s, expected),)
    better = scenario if interval.best_s is None else scenario.with_interval(interval.best_s)
    spares = advise_spares(scenario, target=target)
    if spares.spares is not None:
        return (_spares(scenario, spares.spares, expected),)
    both = advise_spares(better, target=target)
    if both.spares is not None and interval.best_s is not None:
        return _interval(scenario, interval.best_s, expected), _spares(scenario, both.spares, expected)
    return (
        Shortfall(
            setting="target_percent",
            given=100 * target,
            needed=None,
            message=f"{expected}; spares and checkpoint interval can bring it to {both.goodput:.1%} at best",
            fix=f"recover faster (holdfast plan shows each strategy), or lower the target to {100 * both.goodput:.0f}",
        ),
    )


def _interval(scenario: Scenario, best_s: float, expected: str) -> Shortfall:
    given = scenario.checkpoints.interval_s
    return Shortfall(
        setting="checkpoint_interval_s",
        given=given,
        needed=best_s,
        message=f"{expected} with a checkpoint every {given:.0f} s",
        fix=f"set goodput.checkpoint_interval_s to {max(1.0, best_s):.0f}",
    )


def _spares(scenario: Scenario, needed: int, expected: str) -> Shortfall:
    return Shortfall(
        setting="spare_count",
        given=scenario.spares,
        needed=needed,
        message=f"{expected} with {scenario.spares} spares for {scenario.instances} instances",
        fix=f"set spare_count to {needed}",
    )
