"""Rule registry, the runner over a deployment, and suppressions."""

from holdfast.validation.engine.registry import (
    Broken,
    Rule,
    all_rules,
    declare,
    judge,
    most_specific,
    refused,
    rule,
    show,
)
from holdfast.validation.engine.suppression import suppressed

__all__ = ["Broken", "Rule", "all_rules", "declare", "judge", "most_specific", "refused", "rule", "show", "suppressed"]
