"""CloudWatch dashboard of a cluster: overall state at the top, events at the bottom."""

from collections.abc import Sequence

from aws_cdk import Stack
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_logs as logs
from constructs import Construct

from holdfast_constructs.observability.alarms import ClusterAlarms, WatchedFileSystem
from holdfast_constructs.observability.metrics import ClusterMetrics, file_system_metric, minute

WIDTH = 24
HEALTH = "hyperpod_node_health_status_"
HEALTH_STATES = {
    "schedulable": ("ready", "#2ca02c"),
    "unschedulable": ("in deep health checks", "#1f77b4"),
    "unschedulable_pending_reboot": ("waiting for a reboot", "#ff7f0e"),
    "unschedulable_pending_replacement": ("waiting for a replacement", "#d62728"),
}
NODE_EVENTS = ("NodesLost", "NodesFailed", "NodesReplaced", "NodesRebooted")
FOUND = ("UnhealthyNodes", "EfaFaults", "InstanceErrors")
GIB = 1 << 30

OWN_FIELDS = (
    "Latest events of nodes and jobs",
    (
        "fields @timestamp, kind, node, job, fault, action, evidence",
        "filter kind not in ['job_progress', 'file_imported', 'file_exported', 'step_finished']",
    ),
)
HYPERPOD_FIELDS = ("Latest events of HyperPod", ("fields @timestamp, `detail-type`, @message",))
"""Title and query of the list at the bottom."""

Row = list[cloudwatch.IWidget]


class ClusterDashboard(Construct):
    """One dashboard, named after the cluster."""

    dashboard: cloudwatch.Dashboard

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        metrics: ClusterMetrics,
        events: logs.ILogGroup,
        alarms: ClusterAlarms | None = None,
        file_systems: Sequence[WatchedFileSystem] = (),
    ) -> None:
        """
        Define the dashboard.

        Args:
            events: Holdfast's events, or HyperPod's if those are not shipped.
            alarms: Default: no states.
            file_systems: Default: no row about Lustre.
        """
        super().__init__(scope, construct_id)
        self._metrics = metrics
        rows = [[self._header()], self._state(alarms), *filter(None, [self._recoveries()]), self._fabric()]
        rows += [self._lustre(file_system) for file_system in file_systems]
        if metrics.of_own_events:
            rows += [self._incidents()]
            rows += [self._job(), [_latest(events, OWN_FIELDS)]]
        else:
            rows += [[_off()], [_latest(events, HYPERPOD_FIELDS)]]
        self.dashboard = cloudwatch.Dashboard(
            self,
            "Resource",
            dashboard_name=f"{metrics.cluster_name}-hyperpod",
            # Always a minute: sums of what each node reports once a minute count nodes only then.
            period_override=cloudwatch.PeriodOverride.INHERIT,
            widgets=rows,
        )

    def _header(self) -> cloudwatch.IWidget:
        on = f", EKS cluster {self._metrics.eks_cluster_name}" if self._metrics.eks_cluster_name else ""
        text = (
            f"# {self._metrics.cluster_name}\n"
            f"HyperPod cluster in {Stack.of(self).region}{on}. Alarms and nodes, recoveries, GPUs and EFA, "
            "storage, training, then the latest events. Times are UTC."
        )
        return cloudwatch.TextWidget(markdown=text, width=WIDTH, height=2)

    def _state(self, alarms: ClusterAlarms | None) -> Row:
        if self._metrics.eks_cluster_name is None:
            names = NODE_EVENTS if self._metrics.of_own_events else FOUND
            lines: list[cloudwatch.IMetric] = [self._metrics.own(name) for name in names]
            title = "Nodes lost, failed, replaced, rebooted" if self._metrics.of_own_events else "Found by HyperPod"
            nodes = _graph(title, lines, width=12)
        else:
            lines = [self._health(state) for state in HEALTH_STATES]
            nodes = _graph("Nodes by health", lines, width=12, stacked=True)
        if alarms is None:
            return [nodes]
        states = list(alarms.alarms.values())
        return [cloudwatch.AlarmStatusWidget(title="Alarms", alarms=states, width=12, height=6), nodes]

    def _health(self, state: str) -> cloudwatch.IMetric:
        label, color = HEALTH_STATES[state]
        return self._metrics.insights(HEALTH + state, statistic="Sum", label=label, color=color)

    def _recoveries(self) -> Row:
        own = self._metrics.own
        seconds = [
            own("ReplacementSeconds", statistic=statistic, label=statistic.lower())
            for statistic in ("Average", "Maximum")
        ]
        found = [own(name) for name in FOUND]
        if not self._metrics.of_own_events:
            return [_graph("Found by HyperPod", found, width=WIDTH)] if self._metrics.eks_cluster_name else []
        return [
            _graph("Found by HyperPod", found),
            _graph("Notice to replacement in service, seconds", seconds),
            _graph("Replaced nodes, resumed jobs", [own("NodesReplaced"), own("JobsResumed")]),
        ]

    def _fabric(self) -> Row:
        if self._metrics.eks_cluster_name is None:
            text = (
                "**GPUs and EFA**: nothing sends metrics of them from these nodes to CloudWatch; on EKS Container "
                "Insights would. Exporters of yours can write to a Prometheus workspace."
            )
            return [cloudwatch.TextWidget(markdown=text, width=WIDTH, height=2)]
        use = [self._insights("node_gpu_utilization", label) for label in ("Average", "Minimum")]
        heat = [self._insights("node_gpu_temperature", label) for label in ("Average", "Maximum")]
        traffic = [
            self._metrics.insights(f"node_efa_{name}", statistic="Sum")
            for name in ("rx_bytes", "tx_bytes", "rdma_read_bytes", "rdma_write_bytes")
        ]
        drops = [self._metrics.insights("node_efa_rx_dropped", statistic="Sum")]
        return [
            _graph("GPU utilisation, percent", use, width=6),
            _graph("GPU temperature, degrees Celsius", heat, width=6),
            _graph("EFA, bytes per second", traffic, width=6),
            _graph("EFA packets dropped, per second", drops, width=6),
        ]

    def _insights(self, name: str, statistic: str) -> cloudwatch.IMetric:
        return self._metrics.insights(name, statistic=statistic, label=statistic.lower())

    def _lustre(self, watched: WatchedFileSystem) -> Row:
        def metric(name: str) -> cloudwatch.Metric:
            return file_system_metric(name, watched.file_system.file_system_id)

        def per_second(label: str, name: str) -> cloudwatch.IMetric:
            using: dict[str, cloudwatch.IMetric] = {label: metric(name)}
            return cloudwatch.MathExpression(
                expression=f"{label} / PERIOD({label})", using_metrics=using, label=label, period=minute()
            )

        name, capacity = watched.name, watched.storage_capacity_gib * GIB
        free = cloudwatch.MathExpression(
            expression=f"100 * free / {capacity}",
            using_metrics={"free": metric("FreeDataStorageCapacity")},
            period=minute(),
        )
        traffic = [per_second("read", "DataReadBytes"), per_second("write", "DataWriteBytes")]
        operations = [
            per_second("reads", "DataReadOperations"),
            per_second("writes", "DataWriteOperations"),
            per_second("metadata", "MetadataOperations"),
        ]
        return [
            _graph(f"{name}, bytes per second", traffic),
            _graph(f"{name}, free space, percent", [free], minimum=0, maximum=100),
            _graph(f"{name}, operations per second", operations),
        ]

    def _incidents(self) -> Row:
        own = self._metrics.own
        asked = [own(name) for name in ("RemediesRequested", "RemediesRefused", "BreakerOpen")]
        return [
            _graph(
                "Faults found by the health agent", [own("NodeVerdicts"), own("Verdicts"), own("VerdictsWithdrawn")]
            ),
            _graph("Remedies asked for and refused", asked),
            _graph("Detectors lost and back", [own("DetectorsLost"), own("DetectorsBack")]),
            _graph("Ranks handed over, nodes tried out", [own("HandedOver"), own("NodesQualified")]),
        ]

    def _job(self) -> Row:
        own = self._metrics.own
        return [
            _graph("Steps done", [own("JobStep", statistic="Maximum")]),
            _graph("Loss", [own("JobLoss", statistic="Average")], minimum=None),
            _graph("Saving a checkpoint, seconds", [own("CheckpointSeconds", statistic="Maximum")]),
        ]


def _graph(
    title: str,
    lines: Sequence[cloudwatch.IMetric],
    *,
    width: int = 8,
    stacked: bool = False,
    minimum: float | None = 0,
    maximum: float | None = None,
) -> cloudwatch.GraphWidget:
    axis = cloudwatch.YAxisProps(min=minimum, max=maximum, show_units=False)
    return cloudwatch.GraphWidget(
        title=title, left=list(lines), width=width, height=6, stacked=stacked, left_y_axis=axis
    )


def _off() -> cloudwatch.TextWidget:
    text = (
        "**Off**: training (steps, loss, checkpoints), recoveries of jobs, and without Container Insights idle GPUs "
        "and spares. They need the events of Holdfast's agent and runtime, which nothing ships to CloudWatch here; on "
        "a node they are in the file that `HOLDFAST_EVENTS` names."
    )
    return cloudwatch.TextWidget(markdown=text, width=WIDTH, height=2)


def _latest(events: logs.ILogGroup, query: tuple[str, tuple[str, ...]]) -> cloudwatch.LogQueryWidget:
    title, lines = query
    return cloudwatch.LogQueryWidget(
        title=title,
        log_group_names=[events.log_group_name],
        query_lines=[*lines, "sort @timestamp desc", "limit 50"],
        width=WIDTH,
        height=8,
    )
