"""Restricted instance groups, for models such as Amazon Nova."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from aws_cdk import aws_iam as iam

from holdfast_constructs.groups.options import DeepHealthCheck, EbsVolume, OverrideVpc


@dataclass(frozen=True, kw_only=True)
class RestrictedLustre:
    """FSx for Lustre file system that HyperPod makes for restricted groups."""

    storage_capacity_gib: int
    per_unit_storage_throughput: int
    """MB/s per TiB."""


@dataclass(frozen=True, kw_only=True)
class RestrictedInstanceGroup:
    """Restricted nodes of one kind, without lifecycle scripts and volume keys."""

    name: str
    instance_count: int
    instance_type: str
    threads_per_core: Literal[1, 2] = 1
    """Default: 1, no hyper-threading."""
    volumes: Sequence[EbsVolume] = ()
    """Default: no volume besides the root volume."""
    training_plan_arn: str | None = None
    """Default: none."""
    deep_health_checks: Sequence[DeepHealthCheck] = ()
    """Default: none."""
    override_vpc: OverrideVpc | None = None
    """Default: the network of the cluster."""
    role: iam.IRole | None = None
    """The execution role of these nodes, as that of an instance group. Default: that of the cluster."""
    lustre: RestrictedLustre | None = None
    """The group's own file system. Default: none, or that of ``RestrictedEnvironment``."""


@dataclass(frozen=True, kw_only=True)
class RestrictedEnvironment:
    """Shared by the restricted groups of a cluster."""

    lustre: RestrictedLustre | None = None
    """Default: no shared file system is made."""
    lustre_deletion_policy: Literal["Keep", "DeleteIfNotUsed"] = "Keep"
    """Default: "Keep", the shared file system outlives the groups."""
