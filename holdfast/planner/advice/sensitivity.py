"""Sensitivity: percent of change of a result per percent of change of an input."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from holdfast.planner.model import Scenario

STEP = 0.05
"""Inputs are changed by this part, up and down."""


@dataclass(frozen=True, kw_only=True)
class Elasticity:
    input: str
    percent_per_percent: float


def _failures(scenario: Scenario, factor: float) -> Scenario:
    failures = scenario.failures
    return replace(
        scenario, failures=replace(failures, per_instance_hour=min(1.0, failures.per_instance_hour * factor))
    )


def _group_share(scenario: Scenario, factor: float) -> Scenario:
    failures = scenario.failures
    return replace(scenario, failures=replace(failures, group_share=min(1.0, failures.group_share * factor)))


def _detect(scenario: Scenario, factor: float) -> Scenario:
    return scenario.with_strategy(replace(scenario.strategy, detect_s=scenario.strategy.detect_s * factor))


def _replace(scenario: Scenario, factor: float) -> Scenario:
    return scenario.with_strategy(replace(scenario.strategy, replace_s=scenario.strategy.replace_s * factor))


def _resume(scenario: Scenario, factor: float) -> Scenario:
    return scenario.with_strategy(replace(scenario.strategy, resume_s=scenario.strategy.resume_s * factor))


def _interval(scenario: Scenario, factor: float) -> Scenario:
    return scenario.with_interval(scenario.checkpoints.interval_s * factor)


def _write(scenario: Scenario, factor: float) -> Scenario:
    checkpoints = scenario.checkpoints
    return replace(scenario, checkpoints=replace(checkpoints, write_s=checkpoints.write_s * factor))


INPUTS: Mapping[str, Callable[[Scenario, float], Scenario]] = {
    "failure rate": _failures,
    "share of group failures": _group_share,
    "time to detect": _detect,
    "time to replace": _replace,
    "time to resume": _resume,
    "checkpoint interval": _interval,
    "time to write a checkpoint": _write,
}


def elasticities(result: Callable[[Scenario], float], scenario: Scenario) -> tuple[Elasticity, ...]:
    """Sensitivities of a positive result, the largest first."""
    found = []
    for name, change in INPUTS.items():
        more, less = result(change(scenario, 1 + STEP)), result(change(scenario, 1 - STEP))
        if more > 0 and less > 0 and math.isfinite(more) and math.isfinite(less):
            slope = math.log(more / less) / math.log((1 + STEP) / (1 - STEP))
            found.append(Elasticity(input=name, percent_per_percent=slope))
    return tuple(sorted(found, key=lambda each: -abs(each.percent_per_percent)))


def strongest(result: Callable[[Scenario], float], scenario: Scenario) -> Elasticity | None:
    """Most sensitive input; None without any."""
    first = next(iter(elasticities(result, scenario)), None)
    return first if first is not None and abs(first.percent_per_percent) > 1e-9 else None
