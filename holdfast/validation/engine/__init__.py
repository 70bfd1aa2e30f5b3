"""
The register of rules, the runner that lets each judge a deployment, and suppressions. Knows no rule; they are in
rules.
"""

from holdfast.validation.engine.registry import Broken, Rule, all_rules, declare, judge, refused, rule, said, told_best
from holdfast.validation.engine.suppression import suppressed

__all__ = ["Broken", "Rule", "all_rules", "declare", "judge", "refused", "rule", "said", "suppressed", "told_best"]
