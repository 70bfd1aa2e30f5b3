from typing import Annotated, Literal

from pydantic import Field

from holdfast.catalog import (
    AUTO_PATCH,
    BATCH_SIZE,
    CLUSTER,
    DEPLOYMENT,
    GROUP,
    RESTRICTED_GROUP,
    RESTRICTED_LUSTRE,
    SCHEDULED_UPDATE,
    SHARED_ENVIRONMENT,
    TAINT,
    VPC_CONFIG,
    Property,
    bounds,
)
from holdfast.config.models import aws_fields as aws
from holdfast.config.models import fields
from holdfast.config.models.base import Model
from holdfast.config.models.existing import LifeCycleConfig
from holdfast.config.models.lifecycle_mode import LifecycleMode
from holdfast.config.refusals import Allowed

_GROUPS = bounds("instance_groups")


class GroupSlurm(Model):
    """What Slurm makes of an instance group (API: ClusterSlurmConfig)."""

    node_type: Literal["Controller", "Login", "Compute"]
    """Controller runs slurmctld, Compute runs jobs, Login is for people. It cannot be changed later."""
    partition: aws.Partition | None = None
    """The partition of a Compute group: required there, forbidden elsewhere. Default: none"""


class Taint(Model):
    """A Kubernetes taint of a group's nodes."""

    key: Annotated[aws.LabelKey, Property(TAINT, "Key")]
    """Its key."""
    value: Annotated[aws.LabelValue, Property(TAINT, "Value")] = ""
    """Its value. Default: empty"""
    effect: Annotated[Literal["NoSchedule", "PreferNoSchedule", "NoExecute"], Property(TAINT, "Effect")]
    """What it does to pods that do not tolerate it."""


class OverrideVpc(Model):
    """Subnets and security groups of one group (API: OverrideVpcConfig). They cannot be changed later."""

    subnet_ids: Annotated[aws.OneOrMoreSubnetIds, Property(VPC_CONFIG, "Subnets")]
    """Where the group's nodes are."""
    security_group_ids: Annotated[aws.OneOrMoreSecurityGroupIds, Property(VPC_CONFIG, "SecurityGroupIds")]
    """The groups of their network interfaces; every one has to allow all traffic from and to itself."""


class BatchSize(Model):
    """How many nodes are taken at once (API: CapacitySizeConfig)."""

    type: Annotated[Literal["INSTANCE_COUNT", "CAPACITY_PERCENTAGE"], Property(BATCH_SIZE, "Type")]
    """Whether value counts nodes, or is a percentage of the group."""
    value: Annotated[fields.BatchSize, Property(BATCH_SIZE, "Value")]
    """At most 100 for a percentage."""


class Deployment(Model):
    """How an update of software rolls over the nodes of a group (API: DeploymentConfiguration)."""

    maximum_batch_size: Annotated[BatchSize, Property(DEPLOYMENT, "RollingUpdatePolicy.MaximumBatchSize")]
    """Nodes that are updated at once."""
    rollback_maximum_batch_size: Annotated[
        BatchSize | None, Property(DEPLOYMENT, "RollingUpdatePolicy.RollbackMaximumBatchSize")
    ] = None
    """Nodes that are rolled back at once. Default: the service's own"""
    wait_interval_s: Annotated[fields.WaitSeconds, Property(DEPLOYMENT, "WaitIntervalInSeconds")] = 0
    """Pause between batches in seconds. Default: 0"""
    rollback_alarms: Annotated[
        aws.AlarmNames | None, Property(DEPLOYMENT, "AutoRollbackConfiguration", each="AlarmName")
    ] = None
    """Existing CloudWatch alarms that stop the update and roll it back. Default: none"""


class ScheduledUpdate(Model):
    """Updates of the AMI at a time of your own (API: ScheduledUpdateConfig)."""

    schedule_expression: Annotated[aws.ScheduleExpression, Property(SCHEDULED_UPDATE, "ScheduleExpression")]
    """Six fields of cron, in UTC."""
    deployment: Annotated[Deployment | None, Property(SCHEDULED_UPDATE, "DeploymentConfig")] = None
    """How it rolls over the group. Default: all nodes at once"""


class AutoPatch(Model):
    """Security patches that HyperPod applies by itself, on EKS (API: AutoPatchConfig)."""

    strategy: Annotated[Literal["WhenIdle", "WhenAllIdle"], Property(AUTO_PATCH, "PatchingStrategy")]
    """WhenIdle waits for each node, WhenAllIdle for the group. The API's DrainFirst is not to be had through
    CloudFormation."""


class InstanceGroup(Model):
    """Nodes of one kind that are scaled and replaced as a unit (API: ClusterInstanceGroupSpecification)."""

    name: Annotated[aws.GroupName, Property(GROUP, "InstanceGroupName")]
    """Unique in the cluster. Changing it replaces the group's nodes."""
    instance_type: Annotated[aws.InstanceTypeName | None, Property(GROUP, "InstanceType")] = None
    """Such as ml.p5.48xlarge. Default: none, instance_types is given"""
    instance_types: Annotated[aws.InstanceTypeNames | None, Property(GROUP, "InstanceRequirements.InstanceTypes")] = (
        None
    )
    """Types that may take each other's place, the preferred one first; with Continuous
    provisioning only. Default: none, instance_type is given"""
    instance_count: Annotated[fields.NodeCount, Property(GROUP, "InstanceCount")]
    """Nodes that work."""
    min_instance_count: Annotated[fields.NodeCount | None, Property(GROUP, "MinInstanceCount")] = None
    """Nodes without which the group is not in service; with Continuous provisioning only. Default: all of them"""
    spare_count: fields.NodeCount = 0
    """Nodes that idle until one of the others is lost; the group's InstanceCount is the sum. Default: 0"""
    threads_per_core: Annotated[fields.ThreadsPerCore, Property(GROUP, "ThreadsPerCore")] = 1
    """2 turns hyper-threading on. Default: 1, as in the API"""
    capacity: Annotated[Literal["spot", "on-demand"] | None, Property(GROUP, "CapacityRequirements")] = None
    """How capacity is bought; it cannot be changed later, and spot needs EKS and Continuous provisioning.
    Default: on demand, or the training plan"""
    training_plan_arn: Annotated[aws.TrainingPlanArn | None, Property(GROUP, "TrainingPlanArn")] = None
    """The training plan whose capacity the group uses. Default: none"""
    volume_gib: fields.VolumeGib | None = None
    """Size of an extra EBS volume per node, in GiB. Default: no extra volume"""
    volume_kms_key: aws.VolumeKey | None = None
    """KMS key of the extra volume. Default: the service's own"""
    root_volume_kms_key: aws.VolumeKey | None = None
    """KMS key of the root volume. Default: the service's own"""
    mount_lustre: bool = True
    """Whether the group's nodes mount the Lustre file system, when there is one. Default: true"""
    deep_health_checks: Annotated[aws.DeepHealthChecks, Property(GROUP, "OnStartDeepHealthChecks")] = ()
    """Checks of hours that new nodes have to pass, on GPU and Trainium types.
    Default: none"""
    image_id: Annotated[aws.ImageId | None, Property(GROUP, "ImageId")] = None
    """The AMI of the nodes. Default: HyperPod's newest"""
    image_release_version: Annotated[aws.ImageReleaseVersion | None, Property(GROUP, "ImageReleaseVersion")] = None
    """The release of HyperPod's AMI. Default: the newest"""
    network_interface: Annotated[
        Literal["efa", "efa-only"] | None, Property(GROUP, "NetworkInterface.InterfaceType")
    ] = None
    """Kind of the network interfaces beside the first: efa-only take no IP addresses. Default: efa where the type
    has it"""
    override_vpc: Annotated[OverrideVpc | None, Property(GROUP, "OverrideVpcConfig")] = None
    """Subnets and security groups of this group. Default: those of the cluster"""
    availability_zone: aws.GroupZone = None
    """Zone of the group's nodes, one of the network's. It cannot be changed later.
    Default: network.availability_zone"""
    scheduled_update: Annotated[ScheduledUpdate | None, Property(GROUP, "ScheduledUpdateConfig")] = None
    """Updates of the AMI on a schedule. Default: none, updates are yours to start"""
    auto_patch: Annotated[AutoPatch | None, Property(GROUP, "AutoPatchConfig")] = None
    """Security patches that are applied by themselves. Default: none"""
    labels: Annotated[aws.Labels, Property(GROUP, "KubernetesConfig.Labels")] = {}  # noqa: RUF012 - pydantic copies it
    """Kubernetes labels of the nodes, on EKS. Default: none"""
    taints: Annotated[
        tuple[Taint, ...],
        Field(max_length=bounds("taints").most, strict=False),
        Property(GROUP, "KubernetesConfig.Taints"),
    ] = ()
    """Kubernetes taints of the nodes, on EKS. Default: none"""
    lifecycle_mode: LifecycleMode | None = None
    """Lifecycle mode of this group; groups may differ.
    Default: that of lifecycle.mode"""
    life_cycle_config: Annotated[LifeCycleConfig | None, Property(GROUP, "LifeCycleConfig")] = None
    """Scripts of the group that are there already, in place of Holdfast's. Default: lifecycle.existing, or Holdfast's
    own"""
    execution_role_arn: Annotated[aws.RoleArn | None, Property(GROUP, "ExecutionRole")] = None
    """The role of the group's nodes, where it is not that of the cluster. Default: that of the cluster"""
    slurm: GroupSlurm | None = None
    """What Slurm makes of the group: required with Slurm, forbidden on EKS. Default: none"""

    @property
    def total_count(self) -> int:
        """InstanceCount of the API: working nodes and spares."""
        return self.instance_count + self.spare_count

    @property
    def types(self) -> tuple[str, ...]:
        """Allowed instance types, the preferred one first."""
        return (self.instance_type,) if self.instance_type is not None else self.instance_types or ()


class RestrictedLustre(Model):
    """A file system that the service makes in its own account."""

    capacity_gib: Annotated[fields.RestrictedCapacityGib, Property(RESTRICTED_LUSTRE, "SizeInGiB")]
    """Storage capacity in GiB."""
    throughput_mbps_per_tib: Annotated[
        fields.RestrictedThroughput, Property(RESTRICTED_LUSTRE, "PerUnitStorageThroughput")
    ]
    """Throughput per TiB of capacity, in MB/s."""


class RestrictedInstanceGroup(Model):
    """Nodes that nobody can log in to, for training Nova models (API: ClusterRestrictedInstanceGroupSpecification)."""

    name: Annotated[aws.GroupName, Property(GROUP, "InstanceGroupName")]
    """Unique among all groups of the cluster."""
    instance_type: Annotated[aws.InstanceTypeName, Property(GROUP, "InstanceType")]
    """Such as ml.p5.48xlarge."""
    instance_count: Annotated[fields.NodeCount, Property(GROUP, "InstanceCount")]
    """Nodes of the group."""
    threads_per_core: Annotated[fields.ThreadsPerCore, Property(GROUP, "ThreadsPerCore")] = 1
    """2 turns hyper-threading on. Default: 1, as in the API"""
    volume_gib: fields.VolumeGib | None = None
    """Size of an extra EBS volume per node, in GiB. Default: no extra volume"""
    training_plan_arn: Annotated[aws.TrainingPlanArn | None, Property(GROUP, "TrainingPlanArn")] = None
    """The training plan whose capacity the group uses. Default: none"""
    deep_health_checks: Annotated[aws.DeepHealthChecks, Property(GROUP, "OnStartDeepHealthChecks")] = ()
    """Checks that new nodes have to pass. Default: none"""
    override_vpc: Annotated[OverrideVpc | None, Property(GROUP, "OverrideVpcConfig")] = None
    """Subnets and security groups of this group. Default: those of the cluster"""
    execution_role_arn: Annotated[aws.RoleArn | None, Property(GROUP, "ExecutionRole")] = None
    """The role of the group's nodes, where it is not that of the cluster. Default: that of the cluster"""
    lustre: Annotated[RestrictedLustre | None, Property(RESTRICTED_GROUP, "EnvironmentConfig.FSxLustreConfig")] = None
    """The group's file system. Default: the one that the restricted groups share"""


class RestrictedEnvironment(Model):
    """What restricted instance groups share (API: SharedEnvironmentConfig)."""

    lustre: Annotated[RestrictedLustre | None, Property(SHARED_ENVIRONMENT, "FSxLustreConfig")] = None
    """Their file system. Default: each group has its own"""
    lustre_deletion_policy: Annotated[
        Literal["DeleteIfNotUsed", "Keep"], Property(SHARED_ENVIRONMENT, "FSxLustreDeletionPolicy")
    ] = "Keep"
    """What becomes of it when no group uses it any more. Default: Keep"""


class TieredStorage(Model):
    """Memory of the nodes that holds checkpoints (API: TieredStorageConfig); on EKS only."""

    memory_percentage: fields.Percentage
    """Part of each node's memory."""


class Cluster(Model):
    """The HyperPod cluster."""

    name: Annotated[aws.ClusterName | None, Property(CLUSTER, "ClusterName")] = None
    """Changing it replaces the whole cluster. Default: the environment's name"""
    node_recovery: Annotated[Literal["Automatic", "None"], Property(CLUSTER, "NodeRecovery")] = "Automatic"
    """Whether HyperPod replaces or reboots nodes that its health monitoring finds faulty. Default: Automatic"""
    node_provisioning_mode: Annotated[Literal["Continuous"] | None, Property(CLUSTER, "NodeProvisioningMode")] = None
    """Continuous: the cluster is in service with the nodes that are there, and goes on asking for the others.
    Default: all nodes or none"""
    execution_role_arn: Annotated[aws.RoleArn | None, Property(GROUP, "ExecutionRole")] = None
    """A role that is there already, for the nodes of all groups that name none. Nothing is added
    to it. Default: one is made, with what this environment needs"""
    cluster_role_arn: Annotated[aws.RoleArn | None, Property(CLUSTER, "ClusterRole")] = None
    """A role that is there already, with which Karpenter adds and removes nodes. Nothing is added to
    it. Default: one is made where auto_scaler is there"""
    auto_scaler: Annotated[
        Literal["Karpenter"] | None, Property(CLUSTER, "AutoScaling.AutoScalerType", "Karpenter")
    ] = None
    """Karpenter, run by the service, adds and removes nodes as pods need them; on EKS only. Default: none"""
    tiered_storage: TieredStorage | None = None
    """Checkpoints in the memory of the nodes; on EKS only. Default: none"""
    tags: Annotated[aws.Tags, Property(CLUSTER, "Tags")] = {}  # noqa: RUF012 - pydantic copies it
    """Tags of the cluster, beside Holdfast's own. Default: none"""
    instance_groups: Annotated[
        tuple[InstanceGroup, ...],
        Field(min_length=_GROUPS.least, max_length=_GROUPS.most, strict=False),
        Allowed(f"a list of {_GROUPS} instance groups", [], code="HF103"),
    ]
    """With Slurm, exactly one of them is the Controller. Taking one away deletes its nodes."""
    restricted_instance_groups: Annotated[
        tuple[RestrictedInstanceGroup, ...],
        Field(max_length=_GROUPS.most, strict=False),
        Allowed(f"a list of at most {_GROUPS.most} restricted instance groups", []),
    ] = ()
    """Groups for training Nova models, on EKS only. Default: none"""
    restricted_environment: RestrictedEnvironment | None = None
    """What the restricted groups share. Default: nothing"""
