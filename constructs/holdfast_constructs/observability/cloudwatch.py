"""Everything that CloudWatch does for a cluster, wired; each part also stands alone."""

from collections.abc import Sequence

from aws_cdk import RemovalPolicy
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_cloudwatch_actions as cloudwatch_actions
from aws_cdk import aws_kms as kms
from aws_cdk import aws_logs as logs
from constructs import Construct

from holdfast_constructs.observability.alarms import AlarmThresholds, ClusterAlarms, WatchedFileSystem
from holdfast_constructs.observability.dashboard import ClusterDashboard
from holdfast_constructs.observability.event_rules import ClusterEventRules
from holdfast_constructs.observability.logs import RETENTION_DAYS
from holdfast_constructs.observability.metrics import ClusterMetrics
from holdfast_constructs.observability.topic import AlertTopic


class HyperPodObservability(Construct):
    """
    A topic, rules for HyperPod's events, metrics, alarms and a dashboard for one cluster.

    It goes by the cluster's name, so it can stand before the cluster does, and also watch one of another app.
    """

    alerts: AlertTopic
    metrics: ClusterMetrics
    alarms: ClusterAlarms | None
    dashboard: ClusterDashboard | None

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        cluster_name: str,
        events: logs.ILogGroup | None = None,
        eks_cluster_name: str | None = None,
        node_count: int | None = None,
        spare_count: int = 0,
        file_systems: Sequence[WatchedFileSystem] = (),
        alarms: bool = True,
        thresholds: AlarmThresholds | None = None,
        jobs_report: bool = True,
        dashboard: bool = True,
        emails: Sequence[str] = (),
        actions: Sequence[cloudwatch.IAlarmAction] = (),
        encryption_key: kms.IKey | None = None,
        retention_days: int = RETENTION_DAYS,
        removal_policy: RemovalPolicy = RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE,
    ) -> None:
        """
        Watch a cluster.

        Args:
            cluster_name: The HyperPod cluster.
            events: Its event log group, ``/holdfast/<cluster>/events``, where the health agent ships the events of
                nodes and jobs into it. Default: nothing does; metrics, alarms and rows that need them are off, and the
                dashboard says so.
            eks_cluster_name: The EKS cluster below it, which must have Container Insights. Default: Slurm, or EKS
                without them.
            node_count: HyperPod nodes of the cluster, spares included. Default: no alarm about spares on EKS.
            spare_count: How many of them are spare. Default: 0, no alarm about spares.
            file_systems: Default: none.
            alarms: Default: True.
            thresholds: Default: those of AlarmThresholds.
            jobs_report: Whether jobs tell of their progress, as those of Holdfast's runtime do, so that silence means
                idle GPUs. Default: True.
            dashboard: Default: True.
            emails: Each gets a message to confirm before alarms arrive. Default: nobody is subscribed.
            actions: Beside the topic. Default: none.
            encryption_key: For topic and logs. Default: the services' own encryption of logs, none of messages.
            retention_days: Of HyperPod's events. Default: 90.
            removal_policy: Of their log group. Default: RETAIN_ON_UPDATE_OR_DELETE.
        """
        super().__init__(scope, construct_id)
        self.alerts = AlertTopic(self, "Topic", emails=emails, encryption_key=encryption_key)
        rules = ClusterEventRules(
            self,
            "Rules",
            cluster_name=cluster_name,
            topic=self.alerts.topic,
            encryption_key=encryption_key,
            retention_days=retention_days,
            removal_policy=removal_policy,
        )
        self.metrics = ClusterMetrics(
            self,
            "Metrics",
            cluster_name=cluster_name,
            hyperpod_events=rules.log_group,
            events=events,
            eks_cluster_name=eks_cluster_name,
        )
        self.alarms = None
        if alarms:
            self.alarms = ClusterAlarms(
                self,
                "Alarms",
                metrics=self.metrics,
                actions=[cloudwatch_actions.SnsAction(self.alerts.topic), *actions],
                node_count=node_count,
                spare_count=spare_count,
                file_systems=file_systems,
                thresholds=thresholds,
                jobs_report=jobs_report,
            )
        self.dashboard = None
        if dashboard:
            self.dashboard = ClusterDashboard(
                self,
                "Dashboard",
                metrics=self.metrics,
                events=events or rules.log_group,
                alarms=self.alarms,
                file_systems=file_systems,
            )
