from typing import Annotated, Literal

from pydantic import Field

from holdfast.catalog import (
    ACCOUNTING,
    EKS_CLUSTER,
    QUOTA,
    QUOTA_RESOURCE,
    SCHEDULER,
    SCHEDULER_PRIORITY,
    Property,
    bounds,
)
from holdfast.config.models import aws_fields as aws
from holdfast.config.models import fields
from holdfast.config.models.base import Model
from holdfast.config.models.existing import ExistingEks
from holdfast.config.refusals import Allowed, number_in_words

_CLASSES, _NODE_CLASS_GROUPS = bounds("priority_classes"), bounds("node_class_groups")


class Accounting(Model):
    """
    Where slurmdbd keeps the accounting of jobs (API: AccountingDatabase); with Continuous provisioning only.

    A cluster that has such a database cannot go back to one on its controller.
    """

    create: bool = False
    """Whether a database is made in the VPC; then nothing else is set here. Default: false"""
    endpoint: Annotated[fields.HostName | None, Property(ACCOUNTING, "Endpoint")] = None
    """Host name of an existing database. Default: none, and create is true"""
    port: Annotated[fields.Port, Property(ACCOUNTING, "Port")] = 3306
    """Its port. Default: 3306"""
    database: Annotated[fields.DatabaseName, Property(ACCOUNTING, "Name")] = "slurm_acct_db"
    """Its name. Default: slurm_acct_db"""
    secret_arn: Annotated[aws.SecretArn | None, Property(ACCOUNTING, "SecretArn")] = None
    """The secret with its user name and password. Default: none, and create is true"""


class Slurm(Model):
    """Settings of the Slurm orchestrator."""

    config_strategy: Literal["Overwrite", "Managed", "Merge"] = "Managed"
    """What an update does with manual edits of slurm.conf: Overwrite discards them, Managed fails when there are
    some, Merge keeps them (API: SlurmConfigStrategy). Not used with Continuous provisioning. Default: Managed"""
    accounting: Accounting | None = None
    """The database of slurmdbd. Default: one on the controller, which is lost with it"""
    lending: bool = False
    """Whether the health agent of the controller takes nodes of elastic jobs back, with notice, when jobs of a higher
    priority wait for nodes. Default: false, Slurm alone decides"""
    observability_extension: bool = False
    """Whether HyperPod's observability extension collects metrics of nodes, GPUs, network and jobs; needs Continuous
    provisioning. They go to Managed Prometheus with observability.prometheus, else to CloudWatch. Default: false"""


class PriorityClass(Model):
    """A priority that jobs can have."""

    name: Annotated[aws.PriorityClassName, Property(SCHEDULER_PRIORITY, "Name")]
    """Unique among the classes."""
    weight: Annotated[fields.Weight, Property(SCHEDULER_PRIORITY, "Weight")]
    """The higher, the earlier a job is admitted."""


class InstanceQuota(Model):
    """What a team has of one instance type (API: ComputeQuotaResourceConfig)."""

    instance_type: Annotated[aws.InstanceTypeName, Property(QUOTA_RESOURCE, "InstanceType")]
    """One that the cluster has."""
    instance_count: Annotated[
        int, Field(ge=0, le=10_000_000), Allowed("a whole number from 0", 1), Property(QUOTA_RESOURCE, "Count")
    ]
    """Whole instances."""


class Team(Model):
    """The share of a team (API: CreateComputeQuota). Its jobs run in the namespace hyperpod-ns- and its name."""

    name: Annotated[aws.TeamName, Property(QUOTA, "ComputeQuotaTarget.TeamName")]
    """Unique among the teams. Another name is another team."""
    weight: Annotated[fields.Weight, Property(QUOTA, "ComputeQuotaTarget.FairShareWeight", 0)] = 0
    """Among teams that want idle compute, where fair_share is on. Default: 0"""
    quota: Annotated[
        tuple[InstanceQuota, ...],
        Field(max_length=15, strict=False),
        Allowed("a list of at most 15 quotas", []),
        Property(QUOTA, "ComputeQuotaConfig.ComputeQuotaResources"),
    ] = ()
    """What is the team's own. Default: nothing, it borrows"""
    sharing: Annotated[
        Literal["Lend", "DontLend", "LendAndBorrow"],
        Property(QUOTA, "ComputeQuotaConfig.ResourceSharingConfig.Strategy"),
    ] = "LendAndBorrow"
    """What becomes of compute that the team does not use. Default: LendAndBorrow"""
    borrow_limit_percent: Annotated[
        fields.BorrowPercentage | None, Property(QUOTA, "ComputeQuotaConfig.ResourceSharingConfig.BorrowLimit")
    ] = None
    """How much idle compute it may borrow, with LendAndBorrow. Default: 50, the service's own"""
    preemption: Annotated[Literal["Never", "LowerPriority"], Property(QUOTA, "ComputeQuotaConfig.PreemptTeamTasks")] = (
        "LowerPriority"
    )
    """Which of the team's own jobs give way to one of higher priority. Default: LowerPriority"""


class TaskGovernance(Model):
    """How jobs of several teams share the cluster (API: SchedulerConfig and ComputeQuota)."""

    policy: bool = True
    """Whether the cluster has a policy (AWS::SageMaker::ClusterSchedulerConfig), which fewer regions have than quotas:
    us-west-2, for example, has none. Without one there are neither fair_share nor priority_classes. Default: true"""
    fair_share: Annotated[bool, Property(SCHEDULER, "SchedulerConfig.FairShare")] = True
    """Whether teams that have used less come first. Default: true"""
    teams: Annotated[
        tuple[Team, ...], Field(max_length=50, strict=False), Allowed("a list of at most 50 teams", [])
    ] = ()
    """Shares of teams. Default: none"""
    priority_classes: Annotated[
        tuple[PriorityClass, ...],
        Field(max_length=_CLASSES.most, strict=False),
        Allowed(f"a list of at most {_CLASSES.most} priority classes", [], code="HF324"),
        Property(SCHEDULER, "SchedulerConfig.PriorityClasses"),
    ] = ()
    """Priorities of jobs. Default: none, first come first served"""


_Total = Annotated[int, Field(ge=1), Allowed("a whole number from 1", 192, number_in_words)]


class NodePoolLimits(Model):
    """Limits of all nodes of a pool together (Karpenter: spec.limits)."""

    vcpus: _Total | None = None
    """vCPUs of all nodes. Default: no limit"""
    memory_gib: _Total | None = None
    """Memory of all nodes, in GiB. Default: no limit"""
    gpus: _Total | None = None
    """NVIDIA GPUs of all nodes. Default: no limit"""


class NodePool(Model):
    """Instance groups whose nodes Karpenter adds for pending pods and removes (HyperpodNodeClass and NodePool)."""

    name: Annotated[
        str,
        Field(pattern=r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$", max_length=63),
        Allowed("1 to 63 lower-case letters, digits and hyphens, beginning and ending with a letter or digit", "burst"),
    ]
    """Unique among the pools. Nodes have it as the label karpenter.sh/nodepool; changing it replaces them."""
    instance_groups: Annotated[
        tuple[aws.GroupName, ...],
        Field(min_length=_NODE_CLASS_GROUPS.least, max_length=_NODE_CLASS_GROUPS.most, strict=False),
        Allowed(f"a list of {_NODE_CLASS_GROUPS} names of instance groups", ["burst"]),
    ]
    """Groups with instance_count 0. Zones, types, labels and taints of the nodes are those of their groups."""
    limits: NodePoolLimits | None = None
    """Beyond them Karpenter adds no node. Default: none, as many nodes as pods need"""
    consolidation_policy: Literal["WhenEmpty", "WhenEmptyOrUnderutilized"] = "WhenEmpty"
    """Nodes that Karpenter removes: those without pods, or also those whose pods fit on other nodes, where they are
    started again. Default: WhenEmpty"""
    consolidate_after_s: fields.WaitSeconds = 300
    """Seconds without a change of its pods before a node is removed. Default: 300"""


NodePools = Annotated[
    tuple[NodePool, ...],
    # Left out of a stack's metadata where there are none, so that existing templates stay as they are.
    Field(max_length=50, strict=False, exclude_if=lambda pools: not pools),
    Allowed("a list of at most 50 node pools", []),
]


class Eks(Model):
    """Settings of the EKS orchestrator."""

    existing: ExistingEks | None = None
    """An EKS cluster to use instead of making one; its nodes, network and API server are its owner's. Default: one is
    made"""
    on_delete: Literal["Retain", "Delete"] = "Delete"
    """What deleting the stack does with the EKS cluster that it made, its role and its log. It has no training data.
    Default: Delete"""
    kubernetes_version: Annotated[aws.KubernetesVersion | None, Property(EKS_CLUSTER, "Version")] = None
    """One that HyperPod accepts. It can rise by one minor version at a time, and never fall. Default: none, and
    existing names a cluster"""
    public_access_cidrs: Annotated[fields.CidrList, Property(EKS_CLUSTER, "ResourcesVpcConfig.PublicAccessCidrs")] = ()
    """Addresses that may reach the Kubernetes API from the internet. Default: none, it is private"""
    chart_archives: fields.FolderPath | None = None
    """Folder, from that of this file, with the archives of the Helm charts, for a network without a way out. An
    archive has the name of its repository, with + for each slash, and .tar.gz. Default: none, the charts come from
    GitHub"""
    admin_role_arns: aws.RoleArns = ()
    """Roles that administer the Kubernetes cluster: those with which people sign in to AWS, for example. They have to
    exist. Default: none, and then no user can use kubectl, not even the one who deploys"""
    install_on_nodes: bool = True
    """Whether what runs on nodes is installed: CoreDNS, add-ons, operators, agents. The stack waits 45 minutes for a
    first node, and rolls back without one. Where capacity may take longer, write false, and true once there is a node.
    Default: true"""
    training_operator: Literal[False, True, "holdfast"] = False
    """Whether HyperPod's training operator is installed, with cert-manager; holdfast: the operator of
    images.job_operator runs HyperPodPyTorchJobs in its place. Default: false"""
    node_pools: NodePools = ()
    """Nodes that Karpenter adds and removes, where cluster.auto_scaler is Karpenter. Default: none"""
    task_governance: TaskGovernance | None = None
    """Quotas and priorities among teams. Default: none"""
    observability_addon: bool = False
    """Whether HyperPod's observability add-on is installed; needs observability.prometheus. Default: false"""
