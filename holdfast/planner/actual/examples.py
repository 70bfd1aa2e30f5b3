"""Example run, drawn by the rules of the simulation."""

import numpy as np

from holdfast.planner.actual.ledger import Stretch
from holdfast.planner.model import Scenario

_NS_PER_HOUR = 3.6e12
MOST_FAILURES = 200


def example_run(scenario: Scenario, *, hours: float, seed: int) -> tuple[Stretch, ...]:
    """
    First hours of a run on the accounts of a ledger, at most ``MOST_FAILURES`` failures, without checkpoint writes.
    """
    rng = np.random.default_rng(seed)
    strategy, rate = scenario.strategy, scenario.failures_per_hour
    run: list[Stretch] = []
    returns: list[float] = []
    now, down = 0.0, 0.0
    for _ in range(MOST_FAILURES):
        end = now + (float(rng.exponential(1 / rate)) if rate > 0 else hours)
        _cycle(run, scenario, start=now, end=min(end, hours), down=down, failed=end < hours)
        if end >= hours:
            break
        size = scenario.failures.group_size if rng.random() < scenario.failures.group_share else 1
        returns = sorted([*(back for back in returns if back > end), *[end + strategy.out_h] * size])
        now, down = end, strategy.detect_h
        missing = len(returns) - scenario.spares
        if strategy.waits_for_replacement and missing > 0:
            down = max(down, returns[missing - 1] - end)
    return tuple(run)


def _cycle(run: list[Stretch], scenario: Scenario, *, start: float, end: float, down: float, failed: bool) -> None:
    strategy, checkpoints = scenario.strategy, scenario.checkpoints
    begun = bool(run)
    detected = start + (strategy.detect_h if begun else 0.0)
    complete = start + (down if begun else 0.0)
    resumed = complete + (strategy.resume_s / 3600 if begun else 0.0)
    trained = max(0.0, end - resumed)
    kept = trained
    if failed:
        periods = trained // checkpoints.period_h * checkpoints.period_h
        kept = periods if strategy.redo == "checkpoint" else max(0.0, trained - strategy.redo_s / 3600)
    at = start
    for account, until in (
        ("detect", detected),
        ("replace", complete),
        ("rebuild", resumed),
        ("useful", resumed + kept),
        ("redo", end),
    ):
        until_here = min(max(until, at), end)
        if until_here > at:
            run.append(
                Stretch(account=account, start_ns=round(at * _NS_PER_HOUR), end_ns=round(until_here * _NS_PER_HOUR))
            )
            at = until_here
