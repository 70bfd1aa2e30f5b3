"""
What EKS's access policies allow: the tables of AWS's page, and what it says in words of HyperPod's own policies.

The data is in the JSON, each policy with its source and with how much of it is told (``told``). What AWS tells only by
name, or in words about parts of EKS that HyperPod does not use, has no rules here, so it allows nothing.
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
    """One row of a policy's table: Kubernetes' own words, ``*`` for all, and the core API group is empty."""

    verbs: tuple[str, ...]
    api_groups: tuple[str, ...] = ()
    resources: tuple[str, ...] = ()
    non_resource_urls: tuple[str, ...] = ()
    resource_names: tuple[str, ...] = ()
    """Default: objects of any name."""


@dataclass(frozen=True, kw_only=True)
class AccessPolicy:
    """One of AWS's access policies."""

    name: str
    rules: tuple[AccessRule, ...]
    service_linked_only: bool
    """Whether only service-linked roles of AWS may have it."""
    told: str
    """How AWS tells what it allows: "table", or what is missing."""

    @property
    def arn(self) -> str:
        return PREFIX + self.name


@functools.cache
def access_policies() -> Mapping[str, AccessPolicy]:
    """All of them by ARN, in the order of their names."""
    data = json.loads(ACCESS_POLICIES_FILE.read_text())["policies"]
    found = (
        AccessPolicy(
            name=name,
            rules=tuple(AccessRule(**{key: tuple(values) for key, values in rule.items()}) for rule in entry["rules"]),
            service_linked_only=entry["service_linked_only"],
            told=entry["told"],
        )
        for name, entry in data.items()
    )
    return {policy.arn: policy for policy in found}
