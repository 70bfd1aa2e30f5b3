"""
cfn-lint's findings about a template, under cfn-lint's codes.

Its engine takes half a second to import, so only ``lint`` and ``linted_rule`` import it, when they are called.
"""

from holdfast.validation.cfn_lint.engine import Linted, lint
from holdfast.validation.cfn_lint.explanations import linted_rule
from holdfast.validation.cfn_lint.left_out import LEFT_OUT

__all__ = ["LEFT_OUT", "Linted", "lint", "linted_rule"]
