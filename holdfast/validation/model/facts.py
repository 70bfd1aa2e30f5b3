"""What an account says about the cluster that it is to hold. ``from_account`` asks, rules judge."""

import datetime
from collections.abc import Mapping
from dataclasses import dataclass

from holdfast.validation.model.existing_facts import ExistingFacts
from holdfast.validation.model.item import Item


@dataclass(frozen=True, kw_only=True)
class TrainingPlan:
    """A training plan of the account."""

    status: str
    instance_type: str
    availability_zones: frozenset[str]
    available_count: int


@dataclass(frozen=True, kw_only=True)
class AccountSubnet:
    """A subnet that is there."""

    availability_zone: str
    free_addresses: int


@dataclass(frozen=True, kw_only=True)
class AccountSecurityGroup:
    """Whether a security group lets its members talk to each other."""

    from_itself: bool
    to_itself: bool


@dataclass(frozen=True, kw_only=True)
class MachineImage:
    """An AMI that is there."""

    owner: str
    """An account, or ``amazon``."""
    encrypted: bool
    volumes: int
    created: datetime.date


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class AccountFacts(Item):
    """Each UNRESOLVED when the account refused to say it."""

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
