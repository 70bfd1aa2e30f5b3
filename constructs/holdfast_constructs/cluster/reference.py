"""Interface of owned and imported clusters: grants, connections and metrics."""

from collections.abc import Sequence
from typing import Literal, Protocol

import jsii
from aws_cdk import Duration, IResource, Resource
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from constructs import Construct, DependencyGroup, IDependable

READ_ACTIONS = (
    "sagemaker:DescribeCluster",
    "sagemaker:DescribeClusterEvent",
    "sagemaker:DescribeClusterNode",
    "sagemaker:ListClusterEvents",
    "sagemaker:ListClusterNodes",
)
NODE_ACTIONS = (
    "sagemaker:BatchDeleteClusterNodes",
    "sagemaker:BatchRebootClusterNodes",
    "sagemaker:BatchReplaceClusterNodes",
)

NodeHealth = Literal[
    "schedulable", "unschedulable", "unschedulable_pending_reboot", "unschedulable_pending_replacement"
]


NAMESPACE = "ContainerInsights"
"""CloudWatch user guide, "Amazon EKS and Kubernetes Container Insights with enhanced observability metrics"."""


class IHyperPodCluster(IResource, Protocol):
    """A HyperPod cluster, owned or imported."""

    cluster_arn: str
    nodes: IDependable
    """What has to wait for nodes waits for this. Nothing where the cluster is not this app's: its nodes are there."""

    @property
    def resource(self) -> IDependable:
        """Dependency of add-ons on its nodes; None if imported."""
        ...

    @property
    def cluster_name(self) -> str:
        """Raises ValueError for a cluster imported by its ARN, which has no name."""
        ...

    @property
    def eks_cluster_name(self) -> str:
        """Raises ValueError without EKS, and for a cluster imported without this name."""
        ...

    @property
    def connections(self) -> ec2.Connections:
        """Of the nodes' security groups; empty if unknown."""
        ...

    def grant_read(self, grantee: iam.IGrantable) -> iam.Grant:
        """Allow ``grantee`` to see the cluster, its nodes and its events."""
        ...

    def grant_manage_nodes(self, grantee: iam.IGrantable) -> iam.Grant:
        """Allow ``grantee`` to reboot, replace and delete nodes."""
        ...

    def grant_update_software(self, grantee: iam.IGrantable) -> iam.Grant:
        """Allow ``grantee`` to update the nodes' image."""
        ...

    def metric(
        self, metric_name: str, *, statistic: str = "Average", period: Duration | None = None
    ) -> cloudwatch.Metric:
        """
        Container Insights metric of the whole cluster, such as ``node_cpu_utilization``; raises ValueError unless on
        EKS.
        """
        ...

    def metric_node_health(self, health: NodeHealth, *, period: Duration | None = None) -> cloudwatch.Metric:
        """Number of nodes in a health state; see ``metric``."""
        ...

    def metric_node_count(self, *, period: Duration | None = None) -> cloudwatch.Metric:
        """Number of nodes in Kubernetes; see ``metric``."""
        ...

    def metric_failed_node_count(self, *, period: Duration | None = None) -> cloudwatch.Metric:
        """Number of failed nodes in Kubernetes; see ``metric``."""
        ...

    def metric_gpu_utilization(self, *, period: Duration | None = None) -> cloudwatch.Metric:
        """GPU utilization of the nodes, in percent; see ``metric``."""
        ...


@jsii.implements(ec2.IConnectable)
class ClusterBase(Resource):
    """Shared implementation of owned and imported clusters, by attributes alone."""

    cluster_arn: str
    nodes: IDependable

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        cluster_name: str | None = None,
        cluster_arn: str | None = None,
        security_groups: Sequence[ec2.ISecurityGroup] = (),
        eks_cluster_name: str | None = None,
    ) -> None:
        super().__init__(scope, construct_id, physical_name=cluster_name, environment_from_arn=cluster_arn)
        self.nodes = DependencyGroup()
        if cluster_arn is not None:
            self.cluster_arn = cluster_arn
        self._cluster_name = cluster_name
        self._connections = ec2.Connections(security_groups=list(security_groups))
        self._eks_cluster_name = eks_cluster_name

    @property
    def physical_name(self) -> str:
        """Name given by the app; else an empty token."""
        return str(self._physical_name)

    @property
    def cluster_name(self) -> str:
        if self._cluster_name is None:
            raise ValueError("cluster: got its ARN alone, which has no name; use from_cluster_attributes")
        return self._cluster_name

    @property
    def eks_cluster_name(self) -> str:
        if self._eks_cluster_name is None:
            raise ValueError(
                "cluster: got no EKS cluster; allowed: metrics of a cluster on EKS, because Container Insights counts "
                "them; when it is imported, give from_cluster_attributes its eks_cluster_name"
            )
        return self._eks_cluster_name

    @property
    def resource(self) -> IDependable:
        return DependencyGroup()

    @property
    def connections(self) -> ec2.Connections:
        return self._connections

    def grant_read(self, grantee: iam.IGrantable) -> iam.Grant:
        return self._grant(grantee, READ_ACTIONS)

    def grant_manage_nodes(self, grantee: iam.IGrantable) -> iam.Grant:
        return self._grant(grantee, NODE_ACTIONS)

    def grant_update_software(self, grantee: iam.IGrantable) -> iam.Grant:
        return self._grant(grantee, ("sagemaker:UpdateClusterSoftware",))

    def metric(
        self, metric_name: str, *, statistic: str = "Average", period: Duration | None = None
    ) -> cloudwatch.Metric:
        return cloudwatch.Metric(
            namespace=NAMESPACE,
            metric_name=metric_name,
            dimensions_map={"ClusterName": self.eks_cluster_name},
            statistic=statistic,
            period=period or Duration.minutes(1),
        )

    def metric_node_health(self, health: NodeHealth, *, period: Duration | None = None) -> cloudwatch.Metric:
        return self.metric(f"hyperpod_node_health_status_{health}", statistic="Sum", period=period)

    def metric_node_count(self, *, period: Duration | None = None) -> cloudwatch.Metric:
        return self.metric("cluster_node_count", period=period)

    def metric_failed_node_count(self, *, period: Duration | None = None) -> cloudwatch.Metric:
        return self.metric("cluster_failed_node_count", period=period)

    def metric_gpu_utilization(self, *, period: Duration | None = None) -> cloudwatch.Metric:
        return self.metric("node_gpu_utilization", period=period)

    def _grant(self, grantee: iam.IGrantable, actions: Sequence[str]) -> iam.Grant:
        return iam.Grant.add_to_principal(grantee=grantee, actions=list(actions), resource_arns=[self.cluster_arn])
