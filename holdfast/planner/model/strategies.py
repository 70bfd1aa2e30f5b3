"""Strategy for a size from measured recoveries, and failure rate from counted failures."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from holdfast.catalog.goodput import FailureRates, MeasuredRecovery, ObservedFailures, RecoveryStages
from holdfast.planner.model.errors import PlanError
from holdfast.planner.model.scenario import Strategy
from holdfast.planner.model.statistics import RateEstimate, estimate_rate

HALF_A_STEP_S = 15.0
"""Our assumption: a step takes 30 s, and a failure falls on average in its middle."""


@dataclass(frozen=True, kw_only=True)
class AssumedRate:
    estimate: RateEstimate
    accelerator: str
    """Whose failures were counted."""
    stands_in_for: str
    """Accelerator without counted failures; empty when it is the same."""
    observations: tuple[ObservedFailures, ...]


def strategy_at(stages: RecoveryStages, *, instances: int) -> Strategy:
    """Stages at a size: logarithmic between two measured sizes, constant beyond them."""
    measured = stages.measured
    if instances <= measured[0].instances:
        detect_s, replace_s, resume_s = _seconds(measured[0])
    elif instances >= measured[-1].instances:
        detect_s, replace_s, resume_s = _seconds(measured[-1])
    else:
        above = next(index for index, row in enumerate(measured) if row.instances >= instances)
        detect_s, replace_s, resume_s = _between(measured[above - 1 : above + 1], instances)
    return Strategy(
        name=stages.name,
        title=stages.title,
        detect_s=detect_s,
        replace_s=replace_s,
        resume_s=resume_s,
        redo=stages.redo,
        redo_s=HALF_A_STEP_S if stages.redo == "step" else 0.0,
        waits_for_replacement=stages.waits_for_replacement,
    )


def assumed_rate(rates: FailureRates, *, accelerator: str) -> AssumedRate:
    """
    Failure rate of an accelerator: all its failures over all its hours.

    Raises:
        PlanError: no counted failures, and no substitute.
    """
    counted = rates.stand_ins.get(accelerator, accelerator)
    rows = tuple(row for row in rates.observations if row.accelerator == counted)
    estimate = estimate_rate(
        failures=sum(row.failures for row in rows), instance_hours=sum(row.instance_hours for row in rows)
    )
    if estimate is None:
        known = sorted({row.accelerator for row in rates.observations} | set(rates.stand_ins))
        raise PlanError(
            f"no failure rate is known for instances with {accelerator or 'no accelerator'}; "
            f"known: {', '.join(known)}; give one with --failure-rate, in percent per instance-hour"
        )
    return AssumedRate(
        estimate=estimate,
        accelerator=counted,
        stands_in_for=accelerator if counted != accelerator else "",
        observations=rows,
    )


def _seconds(row: MeasuredRecovery) -> tuple[float, float, float]:
    return row.detect_s, row.replace_s, row.resume_s


def _between(pair: Sequence[MeasuredRecovery], instances: int) -> tuple[float, float, float]:
    low, high = pair
    part = math.log(instances / low.instances) / math.log(high.instances / low.instances)
    below, above = _seconds(low), _seconds(high)
    detect_s, replace_s, resume_s = (a + (b - a) * part for a, b in zip(below, above, strict=True))
    return detect_s, replace_s, resume_s
