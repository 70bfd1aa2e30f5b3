"""Metrics of a cluster, from logs and other services: one row per metric with its source."""

from dataclasses import dataclass
from functools import cache

from aws_cdk import Duration
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_logs as logs
from constructs import Construct

from holdfast_common import kinds
from holdfast_constructs.cluster import IHyperPodCluster

NAMESPACE = "Holdfast"
CLUSTER_DIMENSION = "ClusterName"

NODE_HEALTH = "SageMaker HyperPod Cluster Node Health Event"
STATE_CHANGE = "SageMaker HyperPod Cluster State Change"
CLUSTER_EVENT = "SageMaker HyperPod Cluster Event"


@cache
def minute() -> Duration:
    """Default period. Not a constant: loading this module must not call the CDK."""
    return Duration.minutes(1)


@dataclass(frozen=True, kw_only=True)
class LogMetric:
    name: str
    pattern: str
    value: str = "1"
    unit: cloudwatch.Unit = cloudwatch.Unit.COUNT


_NO_JOB = '$.source != "job"'
"""Every user of a node can write the log of jobs; who collects it writes this source into each line."""


def _of_kind(
    name: str,
    kind: str,
    value: str = "1",
    unit: cloudwatch.Unit = cloudwatch.Unit.COUNT,
    *,
    more: str = _NO_JOB,
) -> LogMetric:
    parts = [f'$.kind = "{kind}"', *([] if value == "1" else [f"{value} = *"]), more]
    return LogMetric(name=name, pattern=f"{{ {' && '.join(parts)} }}", value=value, unit=unit)


def _of_job(name: str, kind: str, value: str = "1", unit: cloudwatch.Unit = cloudwatch.Unit.COUNT) -> LogMetric:
    return _of_kind(name, kind, value, unit, more='$.source = "job"')


_GRAVE = '($.detail.severity = "node" || $.action = "reboot" || $.action = "replace")'
OWN_EVENTS = (
    _of_kind("NodesLost", kinds.NODE_LOST),
    _of_kind("NodesFailed", kinds.NODE_FAILED),
    _of_kind("NodesReplaced", kinds.NODE_REPLACED),
    _of_kind("NodesRebooted", kinds.NODE_REBOOTED),
    _of_kind("ReplacementSeconds", kinds.NODE_REPLACED, "$.duration_s", cloudwatch.Unit.SECONDS),
    _of_job("JobProgress", kinds.JOB_PROGRESS),
    _of_job("JobStep", kinds.JOB_PROGRESS, "$.detail.step"),
    _of_job("JobLoss", kinds.JOB_PROGRESS, "$.detail.loss", cloudwatch.Unit.NONE),
    _of_job("JobsResumed", kinds.JOB_RESUMED),
    _of_job("CheckpointSeconds", kinds.CHECKPOINT_SAVED, "$.duration_s", cloudwatch.Unit.SECONDS),
    _of_kind("Verdicts", kinds.VERDICT),
    _of_kind("NodeVerdicts", kinds.VERDICT, more=f"{_NO_JOB} && {_GRAVE}"),
    _of_kind("VerdictsWithdrawn", kinds.VERDICT_WITHDRAWN),
    _of_kind("RemediesRequested", kinds.REMEDY_REQUESTED),
    _of_kind("RemediesRefused", kinds.REMEDY_REFUSED),
    _of_kind("BreakerOpen", kinds.REMEDY_REFUSED, more=f'{_NO_JOB} && $.detail.why = "breaker"'),
    _of_kind("DetectorsLost", kinds.DETECTOR_LOST),
    _of_kind("DetectorsBack", kinds.DETECTOR_BACK),
    _of_kind("HandedOver", kinds.HANDED_OVER),
    _of_kind("NodesQualified", kinds.NODE_QUALIFIED),
)
"""From the event log group; the schema is in docs/reference/events.md."""

_UNHEALTHY = f'$.detail-type = "{NODE_HEALTH}" && $.detail.HealthSummary.HealthStatus = "Unhealthy"'
HYPERPOD_EVENTS = (
    LogMetric(name="UnhealthyNodes", pattern=f"{{ {_UNHEALTHY} }}"),
    # The reason names HMA's fault type; EfaError is one of them.
    LogMetric(
        name="EfaFaults",
        pattern=f'{{ {_UNHEALTHY} && $.detail.HealthSummary.HealthStatusReason = "*EfaError*" }}',
    ),
    LogMetric(
        name="InstanceErrors",
        pattern=(
            f'{{ $.detail-type = "{CLUSTER_EVENT}" && $.detail.EventDetails.EventLevel = "Error"'
            ' && $.detail.EventDetails.ResourceType = "Instance" }'
        ),
    ),
)
"""From HyperPod's events, which a rule writes to a log group. SageMaker's "cluster events reference" page has examples.

The agent's own log lines say the same, but are in a log group whose name is known only once the cluster exists.
"""


class ClusterMetrics(Construct):
    """Metric filters on the event log groups of a cluster, and its metrics by name."""

    of_own_events: bool
    """Whether Holdfast's events are shipped, so that metrics of them exist."""

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        cluster: IHyperPodCluster,
        hyperpod_events: logs.ILogGroup,
        events: logs.ILogGroup | None = None,
        container_insights: bool = False,
    ) -> None:
        """
        Define the filters.

        Args:
            cluster: Its name is the value of the dimension ``ClusterName``.
            hyperpod_events: As EventBridge delivers them.
            events: Holdfast's events, JSON lines. Default: none, without their metrics.
            container_insights: They run on its EKS cluster. Default: False.
        """
        super().__init__(scope, construct_id)
        self.cluster_name = cluster.cluster_name
        self.eks_cluster_name = cluster.eks_cluster_name if container_insights else None
        self.of_own_events = events is not None
        sources = (
            {HYPERPOD_EVENTS: hyperpod_events}
            if events is None
            else {OWN_EVENTS: events, HYPERPOD_EVENTS: hyperpod_events}
        )
        for metrics, group in sources.items():
            for metric in metrics:
                self._filter(group, metric)

    def own(
        self, name: str, *, statistic: str = "Sum", period: Duration | None = None, label: str | None = None
    ) -> cloudwatch.Metric:
        """Metric from events, such as ``NodesLost``."""
        return cloudwatch.Metric(
            namespace=_namespace(self.cluster_name),
            metric_name=name,
            statistic=statistic,
            period=period or minute(),
            label=label or name,
        )

    def insights(
        self,
        name: str,
        *,
        statistic: str,
        period: Duration | None = None,
        label: str | None = None,
        color: str | None = None,
    ) -> cloudwatch.Metric:
        """Container Insights metric over all nodes of the EKS cluster, such as ``node_gpu_utilization``."""
        assert self.eks_cluster_name is not None, "only clusters on EKS have Container Insights"
        return cloudwatch.Metric(
            namespace="ContainerInsights",
            metric_name=name,
            dimensions_map={CLUSTER_DIMENSION: self.eks_cluster_name},
            statistic=statistic,
            period=period or minute(),
            label=label or name,
            color=color,
        )

    def _filter(self, group: logs.ILogGroup, metric: LogMetric) -> None:
        logs.MetricFilter(
            self,
            metric.name,
            log_group=group,
            filter_pattern=logs.FilterPattern.literal(metric.pattern),
            metric_namespace=_namespace(self.cluster_name),
            metric_name=metric.name,
            metric_value=metric.value,
            unit=metric.unit,
        )


def file_system_metric(name: str, file_system_id: str, *, statistic: str = "Sum") -> cloudwatch.Metric:
    """Metric of FSx for a whole file system, such as ``FreeDataStorageCapacity``."""
    return cloudwatch.Metric(
        namespace="AWS/FSx",
        metric_name=name,
        dimensions_map={"FileSystemId": file_system_id},
        statistic=statistic,
        period=minute(),
        label=name,
    )


def _namespace(cluster_name: str) -> str:
    # Not a dimension: a filter's dimension is read from the line, and HyperPod's three event types carry the name in
    # different places.
    return f"{NAMESPACE}/{cluster_name}"
