"""Rule registry, the runner over a deployment, and suppressions."""

from holdfast.validation.engine.registry import Broken, Rule, all_rules, declare, judge, refused, rule, said, told_best
from holdfast.validation.engine.suppression import suppressed

__all__ = ["Broken", "Rule", "all_rules", "declare", "judge", "refused", "rule", "said", "suppressed", "told_best"]
