"""
CloudFormation's validation before a deployment, while references are unknown.

Source: CloudFormation user guide, "Validate stack deployments" (validate-stack-deployments).
"""

from collections.abc import Mapping
from typing import Any

from holdfast.localcloud.aws.cloudformation.registry.validation import Violation, violations
from holdfast.localcloud.aws.cloudformation.template import KNOWN_AFTER_APPLY

NOT_SUPPORTED = frozenset({"AWS::FSx::FileSystem", "AWS::CloudFormation::WaitConditionHandle"})
"""Of the page's list, "Resource limitations", what can be made here; custom resources are on it, too."""

ABOUT_KEYS = ("required key", "extraneous key")
"""Which keys there are is known before any value is."""


def foreseeable(resource_type: str) -> bool:
    return resource_type not in NOT_SUPPORTED and not resource_type.startswith("Custom::")


def foreseen(resource_type: str, properties: Mapping[str, Any], *, region: str) -> list[Violation]:
    """Return the violations that hold whatever the unknown values are."""
    if not foreseeable(resource_type):
        return []
    found = violations(resource_type, properties, region=region)
    return [one for one in found if one.words.startswith(ABOUT_KEYS) or not _unknown(one.instance)]


def _unknown(value: Any) -> bool:
    if isinstance(value, Mapping):
        return any(_unknown(item) for item in value.values())
    if isinstance(value, list):
        return any(_unknown(item) for item in value)
    return isinstance(value, str) and KNOWN_AFTER_APPLY in value
