"""Add-ons that run jobs on a HyperPod cluster with EKS: HyperPod's training operator, and task governance."""

from collections.abc import Sequence
from dataclasses import dataclass

from aws_cdk import aws_iam as iam
from aws_cdk import aws_sagemaker as sagemaker
from constructs import Construct

from holdfast_constructs._cluster_reference import IHyperPodCluster
from holdfast_constructs._eks_access import IHyperPodEks
from holdfast_constructs._eks_addon import EksAddon, PodIdentity

MOST_PRIORITY_CLASSES = 10
"""API model of CreateClusterSchedulerConfig."""
HEAVIEST = 100


class TrainingOperator(Construct):
    """
    HyperPod's training operator, with cert-manager, which signs the certificates of its webhooks.

    The role of its pods is associated before the add-on is made, and not by the add-on itself: version v1.2.1 does not
    say that it takes a role, and EKS then refuses one (awslabs/awsome-distributed-ai issue 1075).
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
        """
        Define a training operator.

        Args:
            eks_cluster: Where it is installed.
            cluster: Whose nodes run it. It is made after them.
            version: Default: see ``EksAddon``.
            cert_manager_version: Default: see ``EksAddon``.
        """
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
    """A priority that jobs can ask for."""

    name: str
    weight: int
    """0 to 100; the heavier goes first."""

    def __post_init__(self) -> None:
        if not 0 <= self.weight <= HEAVIEST:
            raise ValueError(f"priority class '{self.name}': got weight {self.weight}; allowed: 0 to {HEAVIEST}")


class TaskGovernance(Construct):
    """HyperPod task governance: Kueue, installed as an add-on, and the policy by which it orders jobs."""

    scheduler_config: sagemaker.CfnClusterSchedulerConfig

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        eks_cluster: IHyperPodEks,
        cluster: IHyperPodCluster,
        name: str,
        fair_share: bool = True,
        priority_classes: Sequence[PriorityClass] = (),
        version: str | None = None,
    ) -> None:
        """
        Define task governance. Quotas of teams have no CloudFormation resource; they are made through the API.

        Args:
            eks_cluster: Where it is installed. It must not have a Kueue of its own.
            cluster: Whose nodes run it, and whose jobs it orders. It is made after them.
            name: Of the policy.
            fair_share: Default: True, idle compute is lent by weight of team. False: first come, first served.
            priority_classes: At most ten. Default: none, all jobs are equal.
            version: Default: see ``EksAddon``.
        """
        super().__init__(scope, construct_id)
        _check(priority_classes)
        addon = EksAddon(
            self,
            "Addon",
            eks_cluster=eks_cluster,
            name="amazon-sagemaker-hyperpod-taskgovernance",
            version=version,
            after=[cluster.nodes],
        )
        self.scheduler_config = sagemaker.CfnClusterSchedulerConfig(
            self,
            "Resource",
            name=name,
            cluster_arn=cluster.cluster_arn,
            scheduler_config=sagemaker.CfnClusterSchedulerConfig.SchedulerConfigProperty(
                fair_share="Enabled" if fair_share else "Disabled",
                priority_classes=[
                    sagemaker.CfnClusterSchedulerConfig.PriorityClassProperty(name=entry.name, weight=entry.weight)
                    for entry in priority_classes
                ]
                or None,
            ),
        )
        self.scheduler_config.node.add_dependency(addon)


def _check(classes: Sequence[PriorityClass]) -> None:
    names = [entry.name for entry in classes]
    repeated = sorted({name for name in names if names.count(name) > 1})
    if repeated or len(names) > MOST_PRIORITY_CLASSES:
        raise ValueError(
            f"priority classes: got {', '.join(names)}; allowed: at most {MOST_PRIORITY_CLASSES}, with unique names"
        )
