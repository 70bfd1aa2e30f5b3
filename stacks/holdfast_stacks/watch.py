"""How a cluster is watched: logs, events, alarms, a dashboard, and the tools to look at metrics and experiments."""

from dataclasses import dataclass

from aws_cdk import CfnOutput
from constructs import Construct

from holdfast import config
from holdfast_constructs import (
    AlarmThresholds,
    GrafanaWorkspace,
    HyperPodCluster,
    HyperPodObservability,
    LifecycleBundle,
    MlflowApp,
    NodeLogGroup,
    ObservabilityExtension,
    PrometheusWorkspace,
    TensorBoardLogs,
    WatchedFileSystem,
)
from holdfast_stacks.foundations import Foundations, removal_policy


@dataclass(frozen=True, kw_only=True)
class Metrics:
    prometheus: PrometheusWorkspace | None
    grafana: GrafanaWorkspace | None


def watch(
    scope: Construct,
    environment: config.Environment,
    *,
    cluster: HyperPodCluster,
    ground: Foundations,
) -> Metrics:
    settings, lustre = environment.observability, environment.storage.lustre
    groups = environment.cluster.instance_groups
    watched = []
    if lustre is not None and lustre.capacity_gib is not None and ground.lustre is not None:
        watched = [WatchedFileSystem(file_system=ground.lustre.file_system, storage_capacity_gib=lustre.capacity_gib)]
    observability = HyperPodObservability(
        scope,
        "Observability",
        cluster=cluster,
        # Without an agent nobody ships events, and what waits for them would be silent for ever.
        events=ground.events.log_group if _ships(environment) else None,
        jobs_report=False,  # those of other launchers do not, and their GPUs would count as idle
        container_insights=settings.container_insights and environment.eks is not None,
        node_count=sum(group.total_count for group in groups),
        spare_count=sum(group.spare_count for group in groups),
        file_systems=watched,
        alarms=settings.alarms,
        thresholds=AlarmThresholds(
            gpu_idle_minutes=settings.gpu_idle_minutes, lustre_free_percent=settings.lustre_free_percent
        ),
        dashboard=settings.dashboard,
        emails=settings.alarm_emails,
        encryption_key=ground.key,
        retention_days=settings.log_retention_days,
        removal_policy=removal_policy(environment.storage),
    )
    NodeLogGroup(
        scope,
        "NodeLogs",
        cluster=cluster,
        retention_days=settings.log_retention_days,
        encryption_key=ground.key,
    )
    prometheus, grafana = None, None
    if settings.prometheus:
        prometheus = PrometheusWorkspace(
            scope,
            "Prometheus",
            alias=environment.cluster_name,
            alerts=observability.alerts,
            rules=_has_exporters(environment) or _sends_metrics(environment),
            encryption_key=ground.key,
            retention_days=settings.log_retention_days,
            removal_policy=removal_policy(environment.storage),
        )
        if settings.grafana is not None:
            grafana = GrafanaWorkspace(
                scope,
                "Grafana",
                name=environment.cluster_name,
                prometheus=prometheus,
                authentication=settings.grafana.authentication,
            )
    return Metrics(prometheus=prometheus, grafana=grafana)


def node_metrics(
    scope: Construct,
    environment: config.Environment,
    *,
    cluster: HyperPodCluster,
    ground: Foundations,
    prometheus: PrometheusWorkspace | None,
    bundle: LifecycleBundle | None,
) -> None:
    """Metrics that nodes send: those of HyperPod's extension and, by the scripts of ``bundle``, of health agents."""
    extension = environment.slurm is not None and environment.slurm.observability_extension
    scripts = bundle if _sends_metrics(environment) else None
    if prometheus is not None and (extension or scripts is not None):
        for role in cluster.node_roles:
            prometheus.grant_remote_write(role)
        ground.network.add_interface_endpoint("aps-workspaces")  # where nodes have no other way to it
        if scripts is not None:
            scripts.tell("metrics.json", {"remote_write_url": prometheus.remote_write_url})
    if extension:
        ObservabilityExtension(scope, "ObservabilityExtension", cluster=cluster, prometheus=prometheus)


def _ships(environment: config.Environment) -> bool:
    """Whether the agents of nodes ship events: in pods they have no rights in AWS."""
    return environment.has_health_agent and environment.eks is None


def _sends_metrics(environment: config.Environment) -> bool:
    """Whether the agents of nodes write to the workspace, which they are told by the scripts that install them."""
    return environment.observability.prometheus and _ships(environment)


def _has_exporters(environment: config.Environment) -> bool:
    """Whether HyperPod's add-on writes to the workspace; there is none for Slurm."""
    return environment.eks is not None and environment.eks.observability_addon


class Experiments:
    """What keeps track of runs; jobs under Slurm find it in their environment, pods are given the outputs' values."""

    def __init__(self, scope: Construct, environment: config.Environment, *, ground: Foundations) -> None:
        settings, data = environment.observability, ground.data
        self._mlflow = (
            MlflowApp(scope, "Mlflow", name=environment.cluster_name, bucket=data.bucket) if settings.mlflow else None
        )
        self._tensorboard = TensorBoardLogs(bucket=data.bucket) if settings.tensorboard else None
        if self._mlflow is not None:
            for service in ("mlflow", "sagemaker.api"):  # where jobs have no other way to it
                ground.network.add_interface_endpoint(service)
            CfnOutput(scope, "MlflowTrackingUri", value=self._mlflow.app_arn)
        if self._tensorboard is not None:
            CfnOutput(scope, "TensorBoardLogDir", value=self._tensorboard.log_dir)

    @property
    def job_environment(self) -> dict[str, str]:
        kept = [found.environment for found in (self._mlflow, self._tensorboard) if found is not None]
        return {name: value for variables in kept for name, value in variables.items()}

    def grant_write(self, cluster: HyperPodCluster) -> None:
        if self._mlflow is not None:
            self._mlflow.grant_track(cluster.role)
        if self._tensorboard is not None:
            self._tensorboard.grant_write(cluster.role)
