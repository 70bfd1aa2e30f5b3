"""Templates: parsing, parameters, intrinsic functions. Pure, except for the SSM lookup passed in."""

from holdfast.localcloud.aws.cloudformation.template.intrinsics import KNOWN_AFTER_APPLY, TemplateScope, failed_rules
from holdfast.localcloud.aws.cloudformation.template.parameters import chosen, described, resolved, typed
from holdfast.localcloud.aws.cloudformation.template.parsing import (
    LARGEST,
    TemplateError,
    capabilities,
    check,
    dependencies,
    parse,
    references,
)

__all__ = [
    "KNOWN_AFTER_APPLY",
    "LARGEST",
    "TemplateError",
    "TemplateScope",
    "capabilities",
    "check",
    "chosen",
    "dependencies",
    "described",
    "failed_rules",
    "parse",
    "references",
    "resolved",
    "typed",
]
