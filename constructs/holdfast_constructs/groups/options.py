from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Self

from aws_cdk import Duration
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_kms as kms

DeepHealthCheck = Literal["InstanceStress", "InstanceConnectivity"]
"""MultiNodeTrainingValidation is in the API alone; CloudFormation's resource schema (of 2026-10) refuses it."""


@dataclass(frozen=True, kw_only=True)
class EbsVolume:
    """An EBS volume besides the root volume, at ``/opt/sagemaker``."""

    size_gib: int
    key: kms.IKey | None = None
    """It encrypts the volume. HyperPod takes it only with continuous provisioning and never changes it (SageMaker
    developer guide, "Customer managed AWS KMS key encryption for SageMaker HyperPod"). Default: a key of AWS."""


@dataclass(frozen=True, kw_only=True)
class Taint:
    key: str
    effect: Literal["NoSchedule", "PreferNoSchedule", "NoExecute"]
    value: str | None = None
    """Default: none."""


@dataclass(frozen=True, kw_only=True)
class OverrideVpc:
    """Network of one group, if not the cluster's. It cannot be changed later."""

    subnets: Sequence[ec2.ISubnet]
    security_groups: Sequence[ec2.ISecurityGroup]
    """EFA needs each of them to allow all traffic from and to itself."""


@dataclass(frozen=True)
class BatchSize:
    """Number of a group's nodes at once, by ``BatchSize.instances`` or ``BatchSize.percent``."""

    type: Literal["INSTANCE_COUNT", "CAPACITY_PERCENTAGE"]
    value: int

    @classmethod
    def instances(cls, count: int) -> Self:
        return cls("INSTANCE_COUNT", count)

    @classmethod
    def percent(cls, percentage: int) -> Self:
        return cls("CAPACITY_PERCENTAGE", percentage)


@dataclass(frozen=True, kw_only=True)
class Deployment:
    maximum_batch_size: BatchSize | None = None
    """Default: all nodes at once."""
    rollback_maximum_batch_size: BatchSize | None = None
    """Default: as ``maximum_batch_size``, without which it cannot be given."""
    wait_interval: Duration | None = None
    """Pause between batches, at most one hour. Default: none."""
    rollback_alarms: Sequence[cloudwatch.IAlarm] = ()
    """Nodes get their old image back when one of them goes off. Default: nothing is watched."""

    def __post_init__(self) -> None:
        if self.rollback_maximum_batch_size is not None and self.maximum_batch_size is None:
            raise ValueError(
                "deployment: got rollback_maximum_batch_size alone; allowed: both batch sizes; give the other one too"
            )


@dataclass(frozen=True, kw_only=True)
class ScheduledUpdate:
    schedule_expression: str
    """Such as ``cron(00 03 ? * SUN *)``, in UTC."""
    deployment: Deployment | None = None
    """Default: all nodes at once, and nothing is watched."""


@dataclass(frozen=True, kw_only=True)
class AutoPatch:
    """
    Security patches of a group's image, as soon as available; on EKS.

    Further options of the API are refused by CloudFormation's resource schema (of 2026-11): the strategy DrainFirst,
    IdleWaitWindowInSeconds and DrainPolicy; HyperPod sets the date of the next patch.
    """

    strategy: Literal["WhenIdle", "WhenAllIdle"]
    """Each node when it has no job, or all together when none has."""
