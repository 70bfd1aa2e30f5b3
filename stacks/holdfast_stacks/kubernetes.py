"""Kubernetes as an environment asks for it: the control plane, and what is installed once nodes are there."""

from collections.abc import Collection, Sequence
from pathlib import Path

from aws_cdk import Annotations, CfnOutput, Duration
from aws_cdk import aws_iam as iam
from constructs import Construct

from holdfast import config
from holdfast.catalog import chart_archives
from holdfast_constructs import (
    ContainerInsights,
    FsxCsiDriver,
    GrafanaWorkspace,
    HealthAgent,
    HyperPodCluster,
    HyperPodEks,
    IHyperPodEks,
    InstanceQuota,
    JobOperator,
    LustreVolume,
    NodePool,
    NodePools,
    ObservabilityAddon,
    PriorityClass,
    PrometheusWorkspace,
    Taint,
    TaskGovernance,
    Team,
    TrainingOperator,
)
from holdfast_stacks.foundations import Foundations, removal_policy
from holdfast_stacks.images import AddonImage
from holdfast_stacks.required import required
from holdfast_stacks.retention import retention
from holdfast_stacks.shared import shared
from holdfast_stacks.sources import SOURCES


def control_plane(
    scope: Construct,
    environment: config.Environment,
    settings: config.Eks,
    *,
    ground: Foundations,
    folder: Path,
) -> IHyperPodEks:
    """The Kubernetes control plane, with what has to be there before nodes."""
    groups = environment.cluster
    types = {name for group in groups.instance_groups for name in group.types}
    types |= {group.instance_type for group in groups.restricted_instance_groups}
    made = _existing(scope, settings, ground=ground, types=types)
    if made is None:
        made = _made(scope, environment, settings, ground=ground, folder=folder, types=types)
    for index, arn in enumerate(settings.admin_role_arns):
        role = iam.Role.from_role_arn(scope, f"Admin{index}", arn, mutable=False)
        made.grant_access(role, policy="AmazonEKSClusterAdminPolicy")
    if settings.existing is None:
        _say_who_administers(scope, settings.admin_role_arns)
    return made


def _existing(
    scope: Construct,
    settings: config.Eks,
    *,
    ground: Foundations,
    types: Collection[str],
) -> IHyperPodEks | None:
    there = settings.existing
    if there is None:
        return None
    network = ground.network
    found = (
        HyperPodEks.from_cluster_arn(scope, "Eks", cluster_arn=there.cluster, network=network)
        if there.cluster.startswith("arn:")
        else HyperPodEks.from_cluster_name(scope, "Eks", cluster_name=there.cluster, network=network)
    )
    if there.install_charts:
        found.install_charts(sorted(types))
    return found


def _made(
    scope: Construct,
    environment: config.Environment,
    settings: config.Eks,
    *,
    ground: Foundations,
    folder: Path,
    types: Collection[str],
) -> HyperPodEks:
    return HyperPodEks(
        scope,
        "Eks",
        cluster_name=environment.cluster_name,
        network=ground.network,
        kubernetes_version=required(settings.kubernetes_version, setting="eks.kubernetes_version"),
        instance_types=sorted(types),
        public_access_cidrs=settings.public_access_cidrs,
        chart_archives=None if settings.chart_archives is None else chart_archives(folder / settings.chart_archives),
        encryption_key=ground.key,
        log_retention=retention(environment.observability.log_retention_days),
        removal_policy=removal_policy(settings),
    )


def _say_who_administers(scope: Construct, roles: Sequence[str]) -> None:
    """EKS lets in whom an access entry names, and here nobody by having created the cluster."""
    if roles:
        CfnOutput(scope, "KubernetesAdmins", value=", ".join(roles))
        return
    Annotations.of(scope).add_warning_v2(
        "holdfast:nobody-administers-kubernetes",
        "no user may use kubectl, not even the deployer; add eks.admin_role_arns with a role that people sign in with",
    )


def node_settings(environment: config.Environment) -> dict[str, object]:
    """What the lifecycle of a node has to know: who has a volume to use, and whether Lustre has EFA."""
    lustre, groups = environment.storage.lustre, environment.cluster.instance_groups
    # What stands in for a node has no volume that could be mounted.
    volumes = [group.name for group in groups if group.volume_gib is not None and environment.cloud == "aws"]
    return {"volume_instance_groups": volumes, "lustre_efa": lustre is not None and lustre.efa}


def _team(team: config.Team) -> Team:
    quota = [InstanceQuota(**shared(each, InstanceQuota)) for each in team.quota]
    return Team(**{**shared(team, Team), "quota": quota})


def addons(
    scope: Construct,
    environment: config.Environment,
    settings: config.Eks,
    *,
    control_plane: IHyperPodEks,
    cluster: HyperPodCluster,
    ground: Foundations,
    prometheus: PrometheusWorkspace | None,
    grafana: GrafanaWorkspace | None,
    agent: AddonImage,
    operator: AddonImage,
) -> None:
    """Define the health agent, operators, metrics, and file systems for pods."""
    if agent.uri:
        HealthAgent(
            scope,
            "HealthAgent",
            eks_cluster=control_plane,
            chart=SOURCES / "containers" / "health-agent" / "chart",
            image=agent.uri,
            cluster_name=environment.cluster_name,
            mode=environment.health.mode,
            breaker_share=environment.health.breaker_share,
            own_node_only=environment.cloud == "aws",  # the Kubernetes of a rehearsal is too old for the policy
        )
    if operator.uri:
        JobOperator(
            scope,
            "JobOperator",
            eks_cluster=control_plane,
            chart=SOURCES / "containers" / "operator" / "chart",
            image=operator.uri,
            hyperpod_pytorch_jobs=settings.training_operator == "holdfast",
        )
    if environment.observability.container_insights:
        ContainerInsights(
            scope,
            "ContainerInsights",
            eks_cluster=control_plane,
            cluster=cluster,
            log_retention=retention(environment.observability.log_retention_days),
            encryption_key=ground.key,
        )
    storage = environment.storage.lustre
    if storage is not None and storage.capacity_gib is not None and ground.lustre is not None:
        LustreVolume(
            scope,
            "LustreVolume",
            eks_cluster=control_plane,
            driver=FsxCsiDriver(scope, "FsxCsiDriver", eks_cluster=control_plane, cluster=cluster),
            file_system=ground.lustre.file_system,
            capacity_gib=storage.capacity_gib,
        )
    if settings.training_operator is True:
        TrainingOperator(scope, "TrainingOperator", eks_cluster=control_plane, cluster=cluster)
    governance = settings.task_governance
    if governance is not None:
        TaskGovernance(
            scope,
            "TaskGovernance",
            eks_cluster=control_plane,
            cluster=cluster,
            name=environment.cluster_name,
            policy=governance.policy,
            fair_share=governance.fair_share,
            priority_classes=[PriorityClass(**shared(each, PriorityClass)) for each in governance.priority_classes],
            teams=[_team(team) for team in governance.teams],
        )
    if settings.observability_addon and prometheus is not None:
        ground.network.add_interface_endpoint("aps-workspaces")
        ObservabilityAddon(
            scope,
            "ObservabilityAddon",
            eks_cluster=control_plane,
            cluster=cluster,
            prometheus=prometheus,
            grafana=grafana,
        )


def node_pools(
    scope: Construct, environment: config.Environment, *, control_plane: IHyperPodEks, cluster: HyperPodCluster
) -> None:
    """Define node pools; none in a rehearsal, whose Kubernetes has no Karpenter."""
    pools = () if environment.eks is None else environment.eks.node_pools
    if pools and environment.cloud == "aws":
        NodePools(
            scope,
            "NodePools",
            eks_cluster=control_plane,
            cluster=cluster,
            pools=[_node_pool(pool, environment) for pool in pools],
        )


def _node_pool(pool: config.NodePool, environment: config.Environment) -> NodePool:
    groups = (group for group in environment.cluster.instance_groups if group.name in pool.instance_groups)
    taints = next((group.taints for group in groups), ())
    return NodePool(
        name=pool.name,
        instance_groups=pool.instance_groups,
        taints=[Taint(key=taint.key, value=taint.value or None, effect=taint.effect) for taint in taints],
        limits=_limits(pool.limits),
        consolidation_policy=pool.consolidation_policy,
        consolidate_after=Duration.seconds(pool.consolidate_after_s),
    )


def _limits(limits: config.NodePoolLimits | None) -> dict[str, str]:
    """Quantities of Kubernetes, as text: Helm writes large numbers with an exponent."""
    if limits is None:
        return {}
    found = {
        "cpu": limits.vcpus,
        "memory": None if limits.memory_gib is None else f"{limits.memory_gib}Gi",
        "nvidia.com/gpu": limits.gpus,
    }
    return {resource: str(total) for resource, total in found.items() if total is not None}
