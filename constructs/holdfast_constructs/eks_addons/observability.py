"""Monitoring add-ons on EKS: Container Insights, and HyperPod observability for Prometheus."""

from collections.abc import Mapping
from typing import Literal, Protocol

from aws_cdk import ArnFormat, RemovalPolicy, Stack
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_logs as logs
from constructs import Construct

from holdfast_constructs.cluster import IHyperPodCluster
from holdfast_constructs.eks import EksAddon, IHyperPodEks, PodIdentity

INSIGHTS_LOGS = ("application", "dataplane", "host", "performance")
"""CloudWatch user guide, "Container Insights metrics": performance carries the metrics, the others carry logs."""
SCRAPE_INTERVAL_S = 30

Metrics = Literal[
    "trainingMetrics",
    "inferenceMetrics",
    "taskGovernanceMetrics",
    "scalingMetrics",
    "customMetrics",
    "nodeMetrics",
    "acceleratedComputeMetrics",
    "networkMetrics",
]
MetricsLevel = Literal["BASIC", "ADVANCED", "DISABLED"]


class IPrometheus(Protocol):
    """A workspace of Amazon Managed Service for Prometheus."""

    workspace_arn: str


class IGrafana(Protocol):
    """A workspace of Amazon Managed Grafana."""

    workspace_name: str
    workspace_arn: str


class ContainerInsights(Construct):
    """
    CloudWatch Container Insights: metrics of nodes, pods, GPUs, EFA and HyperPod's node health, and container logs.

    Its log groups are made here, because the agent's have no retention. Application Signals is off: it instruments web
    services.
    """

    log_groups: Mapping[str, logs.ILogGroup]
    """By what they hold: application, dataplane, host, performance."""

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        eks_cluster: IHyperPodEks,
        cluster: IHyperPodCluster,
        log_retention: logs.RetentionDays = logs.RetentionDays.ONE_MONTH,
        encryption_key: kms.IKey | None = None,
        removal_policy: RemovalPolicy = RemovalPolicy.DESTROY,
        version: str | None = None,
    ) -> None:
        """
        Define Container Insights.

        Args:
            cluster: Created before it.
            log_retention: Default: ONE_MONTH.
            encryption_key: Of the logs; its policy must allow CloudWatch Logs. Default: CloudWatch's own.
            removal_policy: Of the logs. Default: DESTROY.
        """
        super().__init__(scope, construct_id)
        prefix = f"/aws/containerinsights/{eks_cluster.cluster_name}"
        self.log_groups = {
            name: logs.LogGroup(
                self,
                name.capitalize(),
                log_group_name=f"{prefix}/{name}",
                retention=log_retention,
                encryption_key=encryption_key,
                removal_policy=removal_policy,
            )
            for name in INSIGHTS_LOGS
        }
        identity = PodIdentity(
            self,
            "Identity",
            eks_cluster=eks_cluster,
            namespace="amazon-cloudwatch",
            service_account="cloudwatch-agent",
            statements=_insights_statements(Stack.of(self), prefix),
        )
        kubernetes = {"enhanced_container_insights": True, "accelerated_compute_metrics": True}
        EksAddon(
            self,
            "Addon",
            eks_cluster=eks_cluster,
            name="amazon-cloudwatch-observability",
            version=version,
            configuration={
                "agent": {"config": {"logs": {"metrics_collected": {"kubernetes": kubernetes}}}},
                "containerLogs": {"enabled": True},
            },
            after=[cluster.nodes, identity.resource, *self.log_groups.values()],
        )


class ObservabilityAddon(Construct):
    """HyperPod observability: exporters on each node, for a Prometheus workspace."""

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        eks_cluster: IHyperPodEks,
        cluster: IHyperPodCluster,
        prometheus: IPrometheus,
        grafana: IGrafana | None = None,
        levels: Mapping[Metrics, MetricsLevel] | None = None,
        version: str | None = None,
    ) -> None:
        """
        Define the add-on.

        Args:
            cluster: Created before it.
            grafana: Gets its dashboards.
            levels: Detail by metric group. Default: the add-on's own, without network, scaling and task governance.
        """
        super().__init__(scope, construct_id)
        stack = Stack.of(self)
        identity = PodIdentity(
            self,
            "Identity",
            eks_cluster=eks_cluster,
            namespace="hyperpod-observability",
            service_account="hyperpod-observability-operator-otel-collector",
            statements=_collector_statements(stack, prometheus.workspace_arn),
        )
        workspace = stack.split_arn(prometheus.workspace_arn, ArnFormat.SLASH_RESOURCE_NAME)
        # Without the slash at its end that the workspace's own attribute has: the add-on appends a path.
        endpoint = f"https://aps-workspaces.{workspace.region}.{stack.url_suffix}/workspaces/{workspace.resource_name}"
        configuration: dict[str, object] = {
            "ampWorkspace": {"prometheusEndpoint": endpoint, "arn": prometheus.workspace_arn},
            "logging": {"enabled": True},
        }
        if grafana is not None:
            configuration["amgWorkspace"] = {"workspaceName": grafana.workspace_name, "arn": grafana.workspace_arn}
        if levels:
            configuration["metricsProvider"] = {
                name: {"level": level, "scrapeInterval": SCRAPE_INTERVAL_S} for name, level in levels.items()
            }
        EksAddon(
            self,
            "Addon",
            eks_cluster=eks_cluster,
            name="amazon-sagemaker-hyperpod-observability",
            version=version,
            configuration=configuration,
            after=[cluster.nodes, identity.resource],
        )


def _insights_statements(stack: Stack, prefix: str) -> list[iam.PolicyStatement]:
    """CloudWatchAgentServerPolicy without X-Ray and SSM, limited to these resources."""
    own = f"arn:{stack.partition}:logs:{stack.region}:{stack.account}:log-group:{prefix}/*"
    return [
        iam.PolicyStatement(
            sid="PutMetrics",
            actions=["cloudwatch:PutMetricData"],
            resources=["*"],  # no metric is a resource; the namespace is the limit
            conditions={"StringEquals": {"cloudwatch:namespace": ["ContainerInsights", "CWAgent"]}},
        ),
        iam.PolicyStatement(
            sid="LookAround",
            actions=["ec2:DescribeTags", "ec2:DescribeVolumes", "logs:DescribeLogGroups"],
            resources=["*"],  # none of them can be limited to a resource
        ),
        iam.PolicyStatement(
            sid="WriteLogs",
            actions=[
                "logs:CreateLogGroup",
                "logs:CreateLogStream",
                "logs:DescribeLogStreams",
                "logs:PutLogEvents",
                "logs:PutRetentionPolicy",
            ],
            resources=[own],
        ),
    ]


def _collector_statements(stack: Stack, workspace_arn: str) -> list[iam.PolicyStatement]:
    """As awslabs/awsome-distributed-ai 95b939c, modules/observability/iam_roles.tf, for this workspace only."""
    clusters = f"arn:{stack.partition}:logs:{stack.region}:{stack.account}:log-group:/aws/sagemaker/Clusters/*"
    return [
        iam.PolicyStatement(sid="WriteMetrics", actions=["aps:RemoteWrite"], resources=[workspace_arn]),
        iam.PolicyStatement(
            sid="LookAround",
            actions=["logs:DescribeLogGroups", "logs:StopQuery"],
            resources=["*"],  # none of them can be limited to a resource
        ),
        iam.PolicyStatement(
            sid="UseClusterLogs",
            actions=[
                "logs:CreateLogGroup",
                "logs:CreateLogStream",
                "logs:DescribeLogStreams",
                "logs:FilterLogEvents",
                "logs:GetLogEvents",
                "logs:GetLogRecord",
                "logs:GetQueryResults",
                "logs:PutLogEvents",
                "logs:StartQuery",
            ],
            resources=[clusters],
        ),
    ]
