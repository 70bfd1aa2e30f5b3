"""
The first-order model: the formulas of the published tables.

Assumptions: every failure costs the same time; none strikes during a recovery; a spare, where there is one, is always
left; a failure falls on average in the middle of a checkpoint period.

    MTBF      = 1 / (rate * instances)
    wall      = work * (1 + rate * instances * cost per failure)
    goodput   = work / wall

With checkpoints the work takes (interval + write) / interval longer, and half of that period is lost per failure.
Good while a recovery is short against the MTBF; too kind where it is not.
"""

from holdfast.planner.model.scenario import Scenario


def cost_per_failure_h(scenario: Scenario) -> float:
    """Hours that one failure takes from the job."""
    strategy = scenario.strategy
    waits = strategy.waits_for_replacement and scenario.spares == 0
    lost = scenario.checkpoints.period_h / 2 if strategy.redo == "checkpoint" else 0.0
    missing = 0.0
    if not strategy.waits_for_replacement and scenario.spares == 0:
        gone = sum(size * share for size, share in scenario.failures.sizes())
        missing = gone * max(0.0, strategy.out_h - strategy.detect_h - strategy.back_h) / scenario.instances
    return (strategy.out_h if waits else strategy.detect_h) + strategy.back_h + lost + missing


def first_order_goodput(scenario: Scenario) -> float:
    """Share of the wall time that goes into work that counts."""
    share = scenario.checkpoints.useful_share
    return share / (1.0 + scenario.failures_per_hour * cost_per_failure_h(scenario))
