"""Rule registry, the runner over a deployment, and suppressions."""

from holdfast.validation.engine.registry import (
    Broken,
    Rule,
    all_rules,
    as_json,
    declare,
    judge,
    most_specific,
    refused,
    rule,
)
from holdfast.validation.engine.suppression import suppressed

__all__ = [
    "Broken",
    "Rule",
    "all_rules",
    "as_json",
    "declare",
    "judge",
    "most_specific",
    "refused",
    "rule",
    "suppressed",
]
