"""CloudWatch for a cluster, combined; each part also works alone."""

from collections.abc import Sequence

from aws_cdk import RemovalPolicy
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_cloudwatch_actions as cloudwatch_actions
from aws_cdk import aws_kms as kms
from aws_cdk import aws_logs as logs
from constructs import Construct

from holdfast_constructs.cluster import IHyperPodCluster
from holdfast_constructs.observability.alarms import AlarmThresholds, ClusterAlarms, WatchedFileSystem
from holdfast_constructs.observability.dashboard import ClusterDashboard
from holdfast_constructs.observability.event_rules import ClusterEventRules
from holdfast_constructs.observability.logs import RETENTION_DAYS
from holdfast_constructs.observability.metrics import ClusterMetrics
from holdfast_constructs.observability.topic import AlertTopic


class HyperPodObservability(Construct):
    """
    Topic, rules for HyperPod's events, metrics, alarms and dashboard of one cluster, owned or imported; they do not
    wait for it.
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
        cluster: IHyperPodCluster,
        events: logs.ILogGroup | None = None,
        container_insights: bool = False,
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
        Define the observability of a cluster.

        Args:
            events: Its event log group, ``/holdfast/<cluster>/events``, filled by health agents. Default: none;
                metrics, alarms and rows that need them are off.
            container_insights: They run on its EKS cluster. Default: False: Slurm, or EKS without them.
            node_count: HyperPod nodes, spares included. Default: no alarm about spares on EKS.
            spare_count: Default: 0, no alarm about spares.
            thresholds: Default: those of AlarmThresholds.
            jobs_report: Jobs report progress, as those of Holdfast's runtime, so missing reports mean idle GPUs.
                Default: True.
            emails: Each gets a message to confirm before alarms arrive.
            actions: Beside the topic.
            encryption_key: For topic and logs. Default: the services' own encryption of logs, none of messages.
            retention_days: Of HyperPod's events. Default: 90.
            removal_policy: Of their log group. Default: RETAIN_ON_UPDATE_OR_DELETE.
        """
        super().__init__(scope, construct_id)
        self.alerts = AlertTopic(self, "Topic", emails=emails, encryption_key=encryption_key)
        rules = ClusterEventRules(
            self,
            "Rules",
            cluster=cluster,
            topic=self.alerts.topic,
            encryption_key=encryption_key,
            retention_days=retention_days,
            removal_policy=removal_policy,
        )
        self.metrics = ClusterMetrics(
            self,
            "Metrics",
            cluster=cluster,
            hyperpod_events=rules.log_group,
            events=events,
            container_insights=container_insights,
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
