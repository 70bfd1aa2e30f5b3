"""
Alarms of a cluster, with cause, action, and meaning of missing data.

On EKS the state of nodes, GPUs and EFA comes from Container Insights; on Slurm from events. Alarms without a source are
not made.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from aws_cdk import Duration
from aws_cdk import aws_cloudwatch as cloudwatch
from constructs import Construct

from holdfast_constructs.observability.metrics import ClusterMetrics, file_system_metric, minute
from holdfast_constructs.storage import ILustreFileSystem

BYTES_PER_GIB = 1 << 30
QUIET = cloudwatch.TreatMissingData.NOT_BREACHING
"""Metrics made from events: no event is no news, and good."""
UNKNOWN = cloudwatch.TreatMissingData.MISSING
"""Metrics that an agent or a service sends all the time: silence is INSUFFICIENT_DATA, neither good nor bad."""
SILENT_IS_BAD = cloudwatch.TreatMissingData.BREACHING
"""Signs of life."""
LATE_MINUTES = 3
"""
What FILL made 0 because it came late is looked at again: "M out of N" (CloudWatch user guide, "Using math expressions
with CloudWatch metrics", on FILL: an alarm of it may see a delayed data point as the value that it fills with).
"""
AT_LEAST = cloudwatch.ComparisonOperator.GREATER_THAN_OR_EQUAL_TO_THRESHOLD
AT_MOST = cloudwatch.ComparisonOperator.LESS_THAN_OR_EQUAL_TO_THRESHOLD
BELOW = cloudwatch.ComparisonOperator.LESS_THAN_THRESHOLD


@dataclass(frozen=True, kw_only=True)
class AlarmThresholds:
    """Thresholds of alarms. No vendor publishes values for GPUs and EFA: these are starting points."""

    gpu_idle_percent: float = 10.0
    """Default: 10. Mean utilisation of all GPUs below which the cluster counts as idle. EKS only."""
    gpu_idle_minutes: int = 30
    """Default: 30. For how long; on Slurm, for how long no job reports progress."""
    lustre_free_percent: float = 10.0
    """Default: 10. Free space below which the file system counts as full: Lustre writes slow down before they fail."""
    efa_dropped_per_second: float = 1.0
    """Default: 1. Packets that the cluster's EFA devices received and dropped. EKS only."""
    spare_window_minutes: int = 60
    """Default: 60. On Slurm: nodes lost and not yet replaced within it count against the spares."""

    def __post_init__(self) -> None:
        for name in ("gpu_idle_percent", "lustre_free_percent"):
            if not 0 < getattr(self, name) < 100:
                raise ValueError(f"alarm thresholds: got {name} {getattr(self, name)}; allowed: above 0 and below 100")
        for name in ("gpu_idle_minutes", "spare_window_minutes"):
            if not 1 <= getattr(self, name) <= 1440:
                raise ValueError(f"alarm thresholds: got {name} {getattr(self, name)}; allowed: 1 to 1440, a day")
        if self.efa_dropped_per_second <= 0:
            raise ValueError(
                f"alarm thresholds: got efa_dropped_per_second {self.efa_dropped_per_second}; allowed: above 0"
            )


@dataclass(frozen=True, kw_only=True)
class WatchedFileSystem:
    """File system for dashboards and alarms."""

    file_system: ILustreFileSystem
    storage_capacity_gib: int
    name: str = "Lustre"
    """Default: "Lustre". Distinguishes several; part of ids, so a change replaces alarms."""


class ClusterAlarms(Construct):
    """Alarms of a cluster, named ``<cluster>-<name>``, such as ``demo-NodeUnhealthy``."""

    alarms: dict[str, cloudwatch.Alarm]
    """By the second part of their names."""

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        metrics: ClusterMetrics,
        actions: Sequence[cloudwatch.IAlarmAction] = (),
        node_count: int | None = None,
        spare_count: int = 0,
        file_systems: Sequence[WatchedFileSystem] = (),
        thresholds: AlarmThresholds | None = None,
        jobs_report: bool = True,
    ) -> None:
        """
        Define the alarms.

        Args:
            actions: On alarm and recovery. Default: none.
            node_count: HyperPod nodes, spares included. Default: no alarm about spares on EKS.
            spare_count: Default: 0, no alarm about spares.
            thresholds: Default: those of AlarmThresholds.
            jobs_report: Jobs report progress, so missing reports mean idle GPUs. Default: True.
        """
        super().__init__(scope, construct_id)
        self.alarms = {}
        self._metrics = metrics
        self._actions = actions
        self._thresholds = thresholds or AlarmThresholds()
        self._nodes()
        self._spares(node_count, spare_count)
        if metrics.eks_cluster_name is not None:
            self._accelerators()
        elif metrics.of_own_events and jobs_report:
            self._progress()
        if metrics.of_own_events:
            self._agent()
        for file_system in file_systems:
            self._free_space(file_system)

    def _nodes(self) -> None:
        own, on_eks = self._metrics.own, self._metrics.eks_cluster_name is not None
        unhealthy: dict[str, cloudwatch.IMetric] = {"told": own("UnhealthyNodes")}
        failed: dict[str, cloudwatch.IMetric] = {"errors": own("InstanceErrors")}
        if self._metrics.of_own_events:
            unhealthy["lost"], failed["failed"] = own("NodesLost"), own("NodesFailed")
        if on_eks:
            for state in ("reboot", "replacement"):
                name = f"hyperpod_node_health_status_unschedulable_pending_{state}"
                unhealthy[state] = self._metrics.insights(name, statistic="Sum")
        self._alarm(
            "NodeUnhealthy",
            "A node was found unhealthy or was lost. See the recoveries on the dashboard.",
            metric=_total(unhealthy, "nodes"),
            threshold=1,
            of_minutes=LATE_MINUTES,
        )
        self._alarm(
            "ReplacementFailed",
            "An instance could not be brought into service. Read its lifecycle log, and look for missing capacity.",
            metric=_total(failed, "instances"),
            threshold=1,
            of_minutes=LATE_MINUTES,
        )
        self._alarm(
            "EfaFaults",
            "HyperPod's health agent found an EFA fault on a node.",
            metric=own("EfaFaults"),
            threshold=1,
        )

    def _spares(self, node_count: int | None, spare_count: int) -> None:
        if spare_count == 0 or (self._metrics.eks_cluster_name is None and not self._metrics.of_own_events):
            return
        text = "As many nodes are out of service as there are spares: the next fault stops training."
        if self._metrics.eks_cluster_name is None:
            window = Duration.minutes(self._thresholds.spare_window_minutes)
            used = {name.lower(): self._metrics.own(name, period=window) for name in ("NodesLost", "NodesReplaced")}
            missing = cloudwatch.MathExpression(
                expression="FILL(nodeslost, 0) - FILL(nodesreplaced, 0)",
                using_metrics=used,
                period=window,
                label="nodes lost and not replaced",
            )
            self._alarm("NoSpareLeft", text, metric=missing, threshold=spare_count)
        elif node_count is not None:
            self._alarm(
                "NoSpareLeft",
                text,
                metric=self._metrics.insights("hyperpod_node_health_status_schedulable", statistic="Sum"),
                threshold=node_count - spare_count,
                operator=AT_MOST,
                minutes=3,  # a rebooting or late-reporting node is not a lost one
                missing=UNKNOWN,
            )

    def _accelerators(self) -> None:
        limits = self._thresholds
        self._alarm(
            "GpuIdle",
            f"The GPUs did next to nothing for {limits.gpu_idle_minutes} minutes, and cost as much as when they work.",
            metric=self._metrics.insights("node_gpu_utilization", statistic="Average"),
            threshold=limits.gpu_idle_percent,
            operator=BELOW,
            minutes=limits.gpu_idle_minutes,
            missing=UNKNOWN,
        )
        self._alarm(
            "EfaDrops",
            "EFA devices drop packets that they received. Collectives slow down or time out.",
            metric=self._metrics.insights("node_efa_rx_dropped", statistic="Maximum"),
            threshold=limits.efa_dropped_per_second,
            minutes=5,
            missing=UNKNOWN,
        )

    def _agent(self) -> None:
        own = self._metrics.own
        self._alarm(
            "FaultFound",
            "The health agent found a fault that takes a node out of work. `holdfast incidents` tells it in order.",
            metric=own("NodeVerdicts"),
            threshold=1,
        )
        self._alarm(
            "BreakerOpen",
            "So many nodes are faulty at once that the agents wait for a person. Look for what they have in common.",
            metric=own("BreakerOpen"),
            threshold=1,
        )
        self._alarm(
            "DetectorLost",
            "A detector of a health agent worked and works no more: its node is watched less than it was. "
            "`holdfast status` names it.",
            metric=own("DetectorsLost"),
            threshold=1,
        )

    def _progress(self) -> None:
        minutes = self._thresholds.gpu_idle_minutes
        # Without FILL the last progress counts for longer: CloudWatch looks further back for a data point.
        progress = cloudwatch.MathExpression(
            expression="FILL(jobprogress, 0)",
            using_metrics={"jobprogress": self._metrics.own("JobProgress", period=Duration.minutes(minutes))},
            period=Duration.minutes(minutes),
            label="reports of progress",
        )
        self._alarm(
            "GpuIdle",
            f"No job reported progress for {minutes} minutes: the GPUs cost and do not train. Jobs alone tell of it.",
            metric=progress,
            threshold=1,
            operator=BELOW,
            missing=SILENT_IS_BAD,
        )

    def _free_space(self, watched: WatchedFileSystem) -> None:
        percent = self._thresholds.lustre_free_percent
        self._alarm(
            f"{watched.name}FreeSpace",
            f"Less than {percent:g} % of {watched.name} is free. Release or delete files, or raise its capacity.",
            metric=file_system_metric("FreeDataStorageCapacity", watched.file_system.file_system_id),
            threshold=int(watched.storage_capacity_gib * BYTES_PER_GIB * percent / 100),
            operator=BELOW,
            minutes=5,
            missing=UNKNOWN,
        )

    def _alarm(
        self,
        name: str,
        text: str,
        *,
        metric: cloudwatch.IMetric,
        threshold: float,
        operator: cloudwatch.ComparisonOperator = AT_LEAST,
        minutes: int = 1,
        of_minutes: int | None = None,
        missing: cloudwatch.TreatMissingData = QUIET,
    ) -> None:
        alarm = cloudwatch.Alarm(
            self,
            name,
            alarm_name=f"{self._metrics.cluster_name}-{name}",
            alarm_description=f"{self._metrics.cluster_name}: {text}",
            metric=metric,
            threshold=threshold,
            comparison_operator=operator,
            evaluation_periods=minutes if of_minutes is None else of_minutes,
            datapoints_to_alarm=None if of_minutes is None else minutes,
            treat_missing_data=missing,
        )
        alarm.add_alarm_action(*self._actions)
        alarm.add_ok_action(*self._actions)
        self.alarms[name] = alarm


def _total(metrics: Mapping[str, cloudwatch.IMetric], label: str) -> cloudwatch.MathExpression:
    return cloudwatch.MathExpression(
        expression=" + ".join(f"FILL({name}, 0)" for name in metrics),
        using_metrics=dict(metrics),
        period=minute(),
        label=label,
    )
