"""Account facts about existing resources."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from holdfast.validation.model.item import Item


@dataclass(frozen=True, kw_only=True)
class BucketFact:
    """Bucket by name, which is unique in a partition."""

    state: Literal["own", "foreign", "missing"]
    """foreign: of another account, or closed to who asked."""
    region: str | None = None


@dataclass(frozen=True, kw_only=True)
class EksFact:
    version: str
    authentication_mode: str
    status: str
    vpc_id: str
    addons: frozenset[str]


@dataclass(frozen=True, kw_only=True)
class RoleFact:
    trusted_services: frozenset[str]
    denied: tuple[str, ...] | None
    """What nodes need and it may not do, such as ``ec2:DescribeSubnets``; None: the account did not say."""


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class ExistingFacts(Item):
    """UNRESOLVED: access denied. Absent: does not exist."""

    buckets: Mapping[str, BucketFact] = field(default_factory=dict)
    eks_clusters: Mapping[str, EksFact] = field(default_factory=dict)
    roles: Mapping[str, RoleFact] = field(default_factory=dict)
    """By ARN."""
    vpc_of_subnets: Mapping[str, str] = field(default_factory=dict)
