"""
Rules over the log of a job, with the field names of AWS's HyperPodPyTorchJob.

Semantics: developer guide of SageMaker HyperPod, "Using the training operator to run jobs", read 2026-11-30.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from holdfast_operator.jobs.fields import number, shown, unknown_fields

MOST_RULES, LONGEST_PATTERN = 16, 512
COMPARISONS = ("gt", "gteq", "lt", "lteq", "eq")
_FIELDS = {
    "expectedRecurringFrequencyInSeconds", "expectedStartCutOffInSeconds", "faultOnMatch", "logPattern",
    "metricEvaluationDataPoints", "metricThreshold", "name", "operator", "stopPattern",
}  # fmt: skip
_CHECKS = (
    "expectedRecurringFrequencyInSeconds", "expectedStartCutOffInSeconds", "faultOnMatch", "metricThreshold",
)  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class LogRule:
    name: str
    pattern: str
    """Matched at the start of a line, with the syntax of Python's ``re``; its first group is the metric."""
    stop_pattern: str = ""
    """Deactivates the rule for good. Default: always active."""
    start_s: float | None = None
    """Until the first match. Default: no limit."""
    every_s: float | None = None
    """From a match to the next one. Default: no limit."""
    threshold: float | None = None
    comparison: str = ""
    points: int = 1
    """Consecutive metrics for which the comparison is true."""
    faults_on_match: bool = False


def read_log_rules(found: Sequence[Mapping[str, Any]]) -> tuple[LogRule, ...]:
    """Parse valid rules."""
    return tuple(
        LogRule(
            name=rule["name"],
            pattern=rule["logPattern"],
            stop_pattern=rule.get("stopPattern") or "",
            start_s=rule.get("expectedStartCutOffInSeconds"),
            every_s=rule.get("expectedRecurringFrequencyInSeconds"),
            threshold=rule.get("metricThreshold"),
            comparison=rule.get("operator") or "",
            points=rule.get("metricEvaluationDataPoints") or 1,
            faults_on_match=bool(rule.get("faultOnMatch")),
        )
        for rule in found
    )


def log_rule_mistakes(rules: object, path: str) -> Iterator[str]:
    """Yield all mistakes of a list of rules."""
    if not isinstance(rules, list) or len(rules) > MOST_RULES or not all(isinstance(one, dict) for one in rules):
        got = f"{len(rules)} entries" if isinstance(rules, list) else shown(rules)
        yield f"{path}: got {got}; allowed: a list of up to {MOST_RULES} objects with name and logPattern"
        return
    for index, rule in enumerate(rules):
        yield from _rule(rule, f"{path}[{index}]")
        if rule.get("name") in [one.get("name") for one in rules[:index]]:
            yield f"{path}[{index}].name: got {shown(rule['name'])} again; allowed: a name for each rule"


def _rule(rule: Mapping[str, Any], path: str) -> Iterator[str]:
    yield from unknown_fields(rule, _FIELDS, path)
    if not isinstance(rule.get("name"), str) or not rule["name"]:
        yield f"{path}.name: got {shown(rule.get('name'))}; allowed: a name"
    yield from _pattern(rule.get("logPattern"), f"{path}.logPattern")
    if rule.get("stopPattern") is not None:
        yield from _pattern(rule["stopPattern"], f"{path}.stopPattern")
    for name in ("expectedRecurringFrequencyInSeconds", "expectedStartCutOffInSeconds", "metricEvaluationDataPoints"):
        if rule.get(name) is not None:
            yield from number(rule, name, path, least=1)
    if not isinstance(rule.get("faultOnMatch") or False, bool):
        yield f"{path}.faultOnMatch: got {shown(rule['faultOnMatch'])}; allowed: true, false"
    if all(rule.get(name) in (None, False) for name in _CHECKS):
        yield f"{path}: got a rule that checks nothing; allowed: at least one of {', '.join(_CHECKS)}"
    yield from _metric(rule, path)


def _metric(rule: Mapping[str, Any], path: str) -> Iterator[str]:
    threshold, comparison = rule.get("metricThreshold"), rule.get("operator")
    if threshold is not None and (isinstance(threshold, bool) or not isinstance(threshold, int | float)):
        yield f"{path}.metricThreshold: got {shown(threshold)}; allowed: a number"
    if comparison not in COMPARISONS and (comparison is not None or threshold is not None):
        yield f"{path}.operator: got {shown(comparison)}; allowed: {', '.join(COMPARISONS)}"
    if threshold is not None and _groups(rule.get("logPattern")) == 0:
        yield f"{path}.logPattern: got no group; allowed: one for the metric, such as (\\d+), beside metricThreshold"


def _pattern(text: object, path: str) -> Iterator[str]:
    if not isinstance(text, str) or not 0 < len(text) <= LONGEST_PATTERN:
        got = f"{len(text)} characters" if isinstance(text, str) and text else shown(text)
        yield f"{path}: got {got}; allowed: a regular expression of up to {LONGEST_PATTERN} characters"
        return
    try:
        re.compile(text)
    except (re.error, OverflowError, RecursionError) as error:
        yield f"{path}: got {shown(text)} ({error}); allowed: a regular expression of Python's re"


def _groups(pattern: object) -> int | None:
    try:
        return re.compile(pattern).groups if isinstance(pattern, str) else None
    except (re.error, OverflowError, RecursionError):
        return None
