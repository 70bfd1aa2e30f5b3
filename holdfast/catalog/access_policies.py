"""
EKS access policies: AWS's tables, and its text on HyperPod's own policies.

Data in the JSON, each policy with its source and its level of detail (``detail``). Policies that AWS only names, or
describes for parts of EKS that HyperPod does not use, have no rules, and so allow nothing.
"""

import functools
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

ACCESS_POLICIES_FILE = Path(__file__).with_name("access_policies.json")
PREFIX = "arn:aws:eks::aws:cluster-access-policy/"


@dataclass(frozen=True, kw_only=True)
class AccessRule:
    """Row of a policy's table in Kubernetes' terms; ``*`` for all, and an empty core API group."""

    verbs: tuple[str, ...]
    api_groups: tuple[str, ...] = ()
    resources: tuple[str, ...] = ()
    non_resource_urls: tuple[str, ...] = ()
    resource_names: tuple[str, ...] = ()
    """Default: objects of any name."""


@dataclass(frozen=True, kw_only=True)
class AccessPolicy:
    name: str
    rules: tuple[AccessRule, ...]
    service_linked_only: bool
    """Whether only service-linked roles of AWS may have it."""
    detail: str
    """AWS's description of what it allows: "table", or what is missing."""

    @property
    def arn(self) -> str:
        return PREFIX + self.name


@functools.cache
def access_policies() -> Mapping[str, AccessPolicy]:
    """All policies by ARN, sorted by name."""
    data = json.loads(ACCESS_POLICIES_FILE.read_text())["policies"]
    found = (
        AccessPolicy(
            name=name,
            rules=tuple(AccessRule(**{key: tuple(values) for key, values in rule.items()}) for rule in entry["rules"]),
            service_linked_only=entry["service_linked_only"],
            detail=entry["detail"],
        )
        for name, entry in data.items()
    )
    return {policy.arn: policy for policy in found}
