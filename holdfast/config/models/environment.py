"""
Environment file as frozen models: shape, defaults, derived values.

Editors show a field's docstring. Rules are in ``holdfast.validation``.
"""

from typing import Annotated, Literal

from pydantic import Field

from holdfast.catalog import FILE_SYSTEM, Property
from holdfast.config.models import aws_fields as aws
from holdfast.config.models import fields
from holdfast.config.models.base import Model
from holdfast.config.models.cluster import Cluster, InstanceGroup
from holdfast.config.models.existing import LifeCycleConfig
from holdfast.config.models.health import Health
from holdfast.config.models.lifecycle_mode import LifecycleMode, mode_of
from holdfast.config.models.network import Network
from holdfast.config.models.nodes import Images, Lifecycle, Sessions, StandIns
from holdfast.config.models.observability import Observability
from holdfast.config.models.orchestrators import Eks, Slurm
from holdfast.config.models.storage import Storage


class Encryption(Model):
    """The key that data at rest is encrypted with: file systems, buckets, logs, topics, Kubernetes secrets."""

    kms_key: Annotated[aws.KmsKey, Property(FILE_SYSTEM, "KmsKeyId")] = "aws-managed"
    """aws-managed: each service's own key. create: one customer managed key for this environment. Or the id,
    alias or ARN of a key of yours, whose policy lets the services use it: CloudWatch Logs, and the role
    AWSServiceRoleForFSxS3Access_fs-* of file systems with data repository associations. An alias is resolved when the
    stack is deployed. Default: aws-managed"""


class Goodput(Model):
    """What is expected of the cluster; `holdfast plan` and `holdfast check` compare it with what is to be expected."""

    target_percent: fields.Percentage | None = None
    """Part of the time that training has to move forward. Default: none is asked for"""
    checkpoint_interval_s: fields.Seconds | None = None
    """Seconds from one checkpoint to the next. Default: the one that costs least"""


class Suppression(Model):
    """A finding that is accepted."""

    code: fields.FindingCode
    """Its code, as `holdfast explain` lists it."""
    path: fields.SettingPath | None = None
    """Only at this setting. Default: wherever it is found"""
    reason: fields.Reason
    """Why it is accepted, for the next reader."""


class Environment(Model):
    """One environment: a HyperPod cluster with all that belongs to it, deployed as one stack."""

    name: fields.EnvironmentName
    """Names the stack, and the cluster unless that has a name of its own. Changing it makes another environment."""
    cloud: Literal["aws", "embedded"] = "aws"
    """Where it is deployed: AWS, or the embedded AWS on this machine. Default: aws"""
    account: aws.Account
    """AWS account, in quotes so that YAML keeps its leading zeros."""
    region: aws.Region
    """AWS region."""
    encryption: Encryption = Encryption()
    """Keys of data at rest. Default: each service's own key"""
    permissions_boundary: Annotated[
        aws.PermissionsBoundary | None, Property("AWS::IAM::Role", "PermissionsBoundary")
    ] = None
    """A policy that is there already and that every role made here gets as its permissions boundary. Default: none"""
    termination_protection: bool = False
    """Whether CloudFormation refuses to delete the stack. Default: false"""
    network: Network
    """VPC, subnet and way out."""
    cluster: Cluster
    """Instance groups and recovery."""
    slurm: Slurm | None = None
    """Settings of the Slurm orchestrator. Default: its defaults, unless eks is there"""
    eks: Eks | None = None
    """Settings of the EKS orchestrator. Default: none, the cluster has Slurm"""
    storage: Storage = Field(default_factory=Storage)
    """File systems and data bucket. Default: a bucket alone"""
    lifecycle: Lifecycle = Lifecycle()
    """What happens on a node when it is made. Default: no accounts are made"""
    sessions: Annotated[Sessions | None, Field(exclude_if=lambda sessions: sessions is None)] = None
    """Sessions of people as users of the nodes. Default: none, a session is root's"""
    images: Images | None = None
    """Images that nodes run. Default: none, jobs bring their own software"""
    observability: Observability = Observability()
    """Logs, metrics, alarms. Default: a dashboard and alarms"""
    health: Health = Health()
    """How faulty nodes are found, and what is done about them. Default: an agent that only observes"""
    goodput: Goodput = Goodput()
    """What is expected of the cluster. Default: nothing"""
    allow_replacement: fields.SettingPaths = ()
    """Settings whose change may replace what holds data or nodes, such as cluster.name. Default: none"""
    suppress: Annotated[tuple[Suppression, ...], Field(strict=False)] = ()
    """Findings that are accepted. Default: none"""
    stand_ins: StandIns = StandIns()
    """What takes the place of what this machine lacks; with cloud embedded only. Default: nothing"""

    @property
    def stack_name(self) -> str:
        return f"holdfast-{self.name}"

    @property
    def cluster_name(self) -> str:
        return self.cluster.name or self.name

    @property
    def has_health_agent(self) -> bool:
        """Return True if some group's nodes get the agent."""
        own = (group for group in self.cluster.instance_groups if self.scripts_of(group) is None)
        return self.health.enabled and any(self.lifecycle_mode(group) != "none" for group in own)

    @property
    def orchestrator(self) -> Literal["slurm", "eks"]:
        return "slurm" if self.eks is None else "eks"

    @property
    def eks_cluster_name(self) -> str | None:
        """Name of the EKS cluster; None with Slurm."""
        if self.eks is None:
            return None
        if self.eks.existing is None:
            return self.cluster_name
        return self.eks.existing.cluster.rpartition("/")[2]

    def scripts_of(self, group: InstanceGroup) -> LifeCycleConfig | None:
        """Existing scripts of a group; None for Holdfast's own."""
        return group.life_cycle_config or self.lifecycle.existing

    def lifecycle_mode(self, group: InstanceGroup) -> LifecycleMode:
        scripts = self.scripts_of(group)
        return mode_of(
            group=group.lifecycle_mode,
            scripts=None if scripts is None else scripts.mode,
            environment=self.lifecycle.mode,
            on_eks=self.eks is not None,
            continuous=self.cluster.node_provisioning_mode == "Continuous",
        )
