"""Job add-ons on EKS: HyperPod's training operator, and task governance."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from aws_cdk import CfnResource
from aws_cdk import aws_iam as iam
from aws_cdk import aws_sagemaker as sagemaker
from constructs import Construct

from holdfast.catalog import QUOTA, bounds
from holdfast.validation import translation
from holdfast_constructs.cdk import arguments
from holdfast_constructs.cluster import IHyperPodCluster
from holdfast_constructs.eks import EksAddon, IHyperPodEks, PodIdentity
from holdfast_constructs.synthesis import acknowledge_new_type

MOST_PRIORITY_CLASSES = bounds("priority_classes").most
HEAVIEST = 100


class TrainingOperator(Construct):
    """
    HyperPod's training operator, with cert-manager for its webhooks' certificates.

    The role of its pods is associated before the add-on, not by it: version v1.2.1 does not declare a role, and EKS
    then refuses one (awslabs/awsome-distributed-ai issue 1075).
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        eks_cluster: IHyperPodEks,
        cluster: IHyperPodCluster,
        version: str | None = None,
        cert_manager_version: str | None = None,
    ) -> None:
        """Define a training operator, created after the nodes of ``cluster``."""
        super().__init__(scope, construct_id)
        certificates = EksAddon(
            self,
            "CertManager",
            eks_cluster=eks_cluster,
            name="cert-manager",
            version=cert_manager_version,
            after=[cluster.nodes],
        )
        identity = PodIdentity(
            self,
            "Identity",
            eks_cluster=eks_cluster,
            namespace="aws-hyperpod",
            service_account="hp-training-operator-controller-manager",
            statements=[
                # As AmazonSageMakerHyperPodTrainingOperatorAccess, for this cluster rather than for all with a tag.
                iam.PolicyStatement(actions=["sagemaker:DescribeClusterNode"], resources=[cluster.cluster_arn])
            ],
        )
        EksAddon(
            self,
            "Addon",
            eks_cluster=eks_cluster,
            name="amazon-sagemaker-hyperpod-training-operator",
            version=version,
            after=[certificates.resource, identity.resource],
        )


@dataclass(frozen=True, kw_only=True)
class PriorityClass:
    name: str
    weight: int
    """0 to 100; the heavier goes first."""

    def __post_init__(self) -> None:
        if not 0 <= self.weight <= HEAVIEST:
            raise ValueError(f"priority class '{self.name}': got weight {self.weight}; allowed: 0 to {HEAVIEST}")


@dataclass(frozen=True, kw_only=True)
class InstanceQuota:
    instance_type: str
    instance_count: int


@dataclass(frozen=True, kw_only=True)
class Team:
    """Share of a team, whose jobs run in the namespace ``hyperpod-ns-<name>``."""

    name: str
    """Part of the quota's logical id: another name is another team."""
    weight: int = 0
    """0 to 100, among teams that want idle compute. Default: 0."""
    quota: Sequence[InstanceQuota] = ()
    """Default: none, the team borrows."""
    sharing: Literal["Lend", "DontLend", "LendAndBorrow"] = "LendAndBorrow"
    """Default: LendAndBorrow."""
    borrow_limit_percent: int | None = None
    """Of its own quota, 1 to 500. Default: 50, the service's own."""
    preemption: Literal["Never", "LowerPriority"] = "LowerPriority"
    """Which of the team's own jobs give way. Default: LowerPriority."""

    def __post_init__(self) -> None:
        if not 0 <= self.weight <= HEAVIEST:
            raise ValueError(f"team '{self.name}': got weight {self.weight}; allowed: 0 to {HEAVIEST}")
        if self.borrow_limit_percent is not None and self.sharing != "LendAndBorrow":
            raise ValueError(
                f"team '{self.name}': got borrow_limit_percent with sharing {self.sharing}; allowed: LendAndBorrow, "
                "because others borrow nothing"
            )


class TaskGovernance(Construct):
    """HyperPod task governance: Kueue as an add-on, with policy and quotas."""

    scheduler_config: sagemaker.CfnClusterSchedulerConfig | None
    """None: there is no policy."""

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        eks_cluster: IHyperPodEks,
        cluster: IHyperPodCluster,
        name: str,
        policy: bool = True,
        fair_share: bool = True,
        priority_classes: Sequence[PriorityClass] = (),
        teams: Sequence[Team] = (),
        version: str | None = None,
    ) -> None:
        """
        Define task governance.

        Args:
            eks_cluster: Without a Kueue of its own.
            cluster: Created before it.
            policy: False: none, as in regions with team quotas and without policies.
            fair_share: Default: True, idle compute is lent by weight of team. False: first come, first served.
            priority_classes: At most ten. Default: none, all jobs are equal.
        """
        super().__init__(scope, construct_id)
        _check(priority_classes, teams, policy=policy)
        addon = EksAddon(
            self,
            "Addon",
            eks_cluster=eks_cluster,
            name="amazon-sagemaker-hyperpod-taskgovernance",
            version=version,
            after=[cluster.nodes],
        )
        self.scheduler_config = None
        if policy:
            properties = translation.scheduler_config(
                name=name, cluster_arn=cluster.cluster_arn, fair_share=fair_share, priority_classes=priority_classes
            )
            self.scheduler_config = sagemaker.CfnClusterSchedulerConfig(
                self, "Resource", **arguments(sagemaker.CfnClusterSchedulerConfig, properties)
            )
            self.scheduler_config.node.add_dependency(addon)
        for team in teams:  # aws-cdk-lib 2.275 has no class for quotas yet
            properties = translation.compute_quota(team, cluster_arn=cluster.cluster_arn)
            quota = CfnResource(self, f"Team-{team.name}", type=QUOTA, properties=properties)
            acknowledge_new_type(quota)
            # Weights are of a policy, so that it is there first.
            quota.node.add_dependency(addon if self.scheduler_config is None else self.scheduler_config)


def _check(classes: Sequence[PriorityClass], teams: Sequence[Team], *, policy: bool) -> None:
    names = [entry.name for entry in classes]
    repeated = sorted({name for name in names if names.count(name) > 1})
    if repeated or len(names) > MOST_PRIORITY_CLASSES:
        raise ValueError(
            f"priority classes: got {', '.join(names)}; allowed: at most {MOST_PRIORITY_CLASSES}, with unique names"
        )
    if classes and not policy:
        raise ValueError(
            f"task governance: got priority classes {', '.join(names)} and no policy; allowed: with a policy"
        )
    shares = [team.name for team in teams]
    if len(set(shares)) < len(shares):
        raise ValueError(f"teams: got {', '.join(shares)}; allowed: unique names")
