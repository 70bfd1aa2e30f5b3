"""Account facts about the cluster to create."""

import datetime
from collections.abc import Mapping
from dataclasses import dataclass

from holdfast.validation.model.existing_facts import ExistingFacts
from holdfast.validation.model.item import Item


@dataclass(frozen=True, kw_only=True)
class TrainingPlan:
    status: str
    instance_type: str
    availability_zones: frozenset[str]
    available_count: int


@dataclass(frozen=True, kw_only=True)
class AccountSubnet:
    availability_zone: str
    free_addresses: int


@dataclass(frozen=True, kw_only=True)
class AccountSecurityGroup:
    """``True`` if its members may talk to each other."""

    from_itself: bool
    to_itself: bool


@dataclass(frozen=True, kw_only=True)
class MachineImage:
    owner: str
    """An account, or ``amazon``."""
    encrypted: bool
    volumes: int
    created: datetime.date


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class AccountFacts(Item):
    """UNRESOLVED: access denied."""

    cluster_quotas: Mapping[str, float]
    """Nodes allowed, by instance type; and under "" those of all types together, over all clusters."""
    offered: frozenset[tuple[str, str]]
    """Instance type and availability zone."""
    network_interfaces_left: float
    vpcs_left: float
    elastic_ips_left: float
    alarms: frozenset[str]
    """Those of the rollback alarms that exist."""
    training_plans: Mapping[str, TrainingPlan]
    """By ARN; what is not there does not exist."""
    subnets: Mapping[str, AccountSubnet]
    security_groups: Mapping[str, AccountSecurityGroup]
    images: Mapping[str, MachineImage]
    existing: ExistingFacts | None = None
    """Of what the environment uses that is there already."""
