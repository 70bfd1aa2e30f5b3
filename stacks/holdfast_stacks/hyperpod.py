from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from aws_cdk import Acknowledgment, CfnOutput, Stack, Validations
from aws_cdk import Environment as CdkEnvironment
from aws_cdk import aws_iam as iam
from constructs import Construct

from holdfast.config import Environment
from holdfast.updates import environment_metadata
from holdfast_constructs import (
    AutoScaling,
    EksOrchestrator,
    HyperPodCluster,
    IHyperPodEks,
    ILifecycleScripts,
    InstanceGroup,
    LifecycleBundle,
    OpenZfsMount,
    SessionDocument,
    SlurmOrchestrator,
    TieredStorage,
)
from holdfast_stacks import foundations, kubernetes, watch
from holdfast_stacks.foundations import Foundations
from holdfast_stacks.groups import Groups
from holdfast_stacks.images import AddonImage, TrainingImage, health_agent_image, operator_image
from holdfast_stacks.sources import SOURCES

LIFECYCLE_SOURCES = (
    SOURCES / "lifecycle" / "on_create.sh",
    SOURCES / "lifecycle" / "on_init_complete.sh",
    SOURCES / "lifecycle" / "holdfast_lifecycle",
    SOURCES / "containers" / "common" / "holdfast_common",
    SOURCES / "containers" / "training" / "holdfast_runtime",
    SOURCES / "containers" / "health-agent" / "holdfast_agent",
    SOURCES / "containers" / "health-agent" / "holdfast-agent.service",
    SOURCES / "containers" / "health-agent" / "holdfast-events.service",
)
EVENTS_PATH = "/var/log/holdfast/events.jsonl"
"""Event log of lifecycle scripts and jobs on a node."""
OF_AWS_ONLY = ("HF032", "HF038", "HF627")
"""Findings of ``holdfast check`` that apply to files for AWS only; a template does not record its cloud."""


class HyperPodStack(Stack):
    """A HyperPod cluster with its network, storage, orchestrator, scripts, images and watch."""

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        environment: Environment,
        folder: Path = SOURCES / "environments",
    ) -> None:
        """
        Define the stack of an environment.

        Args:
            environment: What is described.
            folder: Where the environment file is; its lifecycle scripts are looked for from there.
                Default: ``environments``.
        """
        super().__init__(
            scope,
            construct_id,
            stack_name=environment.stack_name,
            termination_protection=environment.termination_protection,
            env=CdkEnvironment(account=environment.account, region=environment.region),
            description=f"HyperPod cluster {environment.cluster_name}, made by Holdfast",
        )
        given = (environment.network.availability_zone, environment.network.control_plane_availability_zone)
        self._zones = [zone for zone in given if zone is not None]
        self.template_options.metadata = environment_metadata(environment)
        if environment.permissions_boundary is not None:
            _boundary(self, environment.permissions_boundary)
        for accepted in environment.suppress:
            acknowledgment = Acknowledgment(id=f"holdfast::{accepted.code}", reason=accepted.reason)
            Validations.of(self).acknowledge(acknowledgment)
        if environment.cloud == "embedded":
            for code in OF_AWS_ONLY:
                reason = "the embedded AWS keeps nothing of a rehearsal, and has every type everywhere"
                Validations.of(self).acknowledge(Acknowledgment(id=f"holdfast::{code}", reason=reason))
        settings = Groups(self, "Groups", environment=environment)
        groups = settings.instance_groups()
        ground = foundations.foundations(self, environment)
        groups = settings.placed(groups, ground.network)
        image, agent = TrainingImage(self, environment), health_agent_image(self, environment)
        operator = operator_image(self, environment)
        experiments = watch.Experiments(self, environment, ground=ground)
        bundle = self._lifecycle(environment, image, agent, experiments, folder)
        scripts = settings.scripts() or bundle
        control_plane = self._control_plane(environment, ground, folder)
        cluster = self._cluster(environment, settings, groups, ground, scripts, control_plane)
        image.grant_pull(cluster.role)
        agent.grant_pull(cluster.role)
        operator.grant_pull(cluster.role)
        metrics = watch.watch(self, environment, cluster=cluster, ground=ground)
        watch.node_metrics(
            self, environment, cluster=cluster, ground=ground, prometheus=metrics.prometheus, bundle=bundle
        )
        experiments.grant_write(cluster)
        if control_plane is not None:
            kubernetes.node_pools(self, environment, control_plane=control_plane, cluster=cluster)
        if environment.eks is not None and control_plane is not None and environment.eks.install_on_nodes:
            kubernetes.addons(
                self,
                environment,
                environment.eks,
                control_plane=control_plane,
                cluster=cluster,
                ground=ground,
                prometheus=metrics.prometheus,
                grafana=metrics.grafana,
                agent=agent,
                operator=operator,
            )
        if environment.sessions is not None:
            name = f"holdfast-{environment.cluster_name}"
            user = environment.sessions.default_user
            document = SessionDocument(self, "Sessions", name=name, default_user=user)
            CfnOutput(self, "SessionDocumentName", value=document.document_name)
        self._outputs(environment, cluster, bundle, ground)

    @property
    def availability_zones(self) -> list[str]:
        """The zones of the environment file; without this the CDK would look up all zones and synthesise again."""
        return self._zones

    def _control_plane(self, environment: Environment, ground: Foundations, folder: Path) -> IHyperPodEks | None:
        if environment.eks is None:
            return None
        return kubernetes.control_plane(self, environment, environment.eks, ground=ground, folder=folder)

    def _cluster(
        self,
        environment: Environment,
        settings: Groups,
        groups: Sequence[InstanceGroup],
        ground: Foundations,
        scripts: ILifecycleScripts | None,
        control_plane: IHyperPodEks | None,
    ) -> HyperPodCluster:
        on_slurm, lustre = control_plane is None, ground.lustre
        cluster = HyperPodCluster(
            self,
            "Cluster",
            cluster_name=environment.cluster_name,
            network=ground.network,
            orchestrator=self._orchestrator(environment, control_plane, ground),
            instance_groups=_with_mounts(environment, groups, ground.home) if on_slurm else groups,
            restricted_instance_groups=settings.restricted_instance_groups(),
            restricted_environment=settings.restricted_environment(),
            lifecycle=scripts,
            lustre=lustre if on_slurm else None,
            home=ground.home if on_slurm else None,
            node_recovery=environment.cluster.node_recovery,
            continuous_provisioning=environment.cluster.node_provisioning_mode == "Continuous",
            install_on_nodes=environment.eks is None or environment.eks.install_on_nodes,
            auto_scaling=None if environment.cluster.auto_scaler is None else AutoScaling(),
            tiered_storage=_tiered_storage(environment),
            role=settings.role(),
            auto_scaling_role=settings.cluster_role(),
            tags=_tags(environment),
        )
        ground.data.bucket.grant_read_write(cluster.role)
        if environment.has_health_agent:
            cluster.allow_health_agent(events=ground.events.log_group)
        if not on_slurm and lustre is not None and lustre.file_system.efa:
            lustre.file_system.grant_describe(cluster)  # pods mount it; without this, over TCP
            ground.network.add_interface_endpoint("fsx")
        return cluster

    def _orchestrator(
        self, environment: Environment, control_plane: IHyperPodEks | None, ground: Foundations
    ) -> SlurmOrchestrator | EksOrchestrator:
        if control_plane is not None:
            return EksOrchestrator(control_plane=control_plane)
        from holdfast_stacks import slurm  # its database loads what Kubernetes has no use for

        return slurm.slurm(self, environment, network=ground.network, key=ground.key)

    def _lifecycle(
        self,
        environment: Environment,
        image: TrainingImage,
        agent: AddonImage,
        experiments: watch.Experiments,
        folder: Path,
    ) -> LifecycleBundle | None:
        """Our scripts; none where HyperPod alone makes all nodes ready, or scripts that are there already do."""
        groups = environment.cluster.instance_groups
        own = [group for group in groups if environment.scripts_of(group) is None]
        if all(environment.lifecycle_mode(group) == "none" for group in own):
            return None
        bucket = foundations.lifecycle_bucket(self, environment)
        lustre, home = environment.storage.lustre, environment.storage.home
        mounting = [group.name for group in environment.cluster.instance_groups if group.mount_lustre]
        mounted = lustre is not None and environment.orchestrator == "slurm"
        return LifecycleBundle(
            self,
            "Lifecycle",
            name=environment.name,
            sources=LIFECYCLE_SOURCES,
            scripts=[folder / script for script in environment.lifecycle.scripts],
            checks=[folder / check for check in environment.health.checks],
            config={
                "cluster_name": environment.cluster_name,
                "orchestrator": environment.orchestrator,
                "users": [user.model_dump(exclude_defaults=True) for user in environment.lifecycle.users],
                "fsx_mount_path": lustre.mount_path if lustre is not None and mounted else "",
                "fsx_instance_groups": mounting if mounted else [],
                **({"home_mount_path": home.mount_path} if home and environment.orchestrator == "slurm" else {}),
                "preload": [_below(lustre.mount_path, path) for path in lustre.preload] if lustre is not None else [],
                "events_path": EVENTS_PATH,
                "scripts": [Path(script).name for script in environment.lifecycle.scripts],
                "training_image": image.uri,
                "health": {
                    **environment.health.model_dump(),
                    "checks": [Path(check).name for check in environment.health.checks],
                    **({"unit": False} if agent.uri else {}),
                },
                **({"lending": True} if environment.slurm is not None and environment.slurm.lending else {}),
                **(kubernetes.node_settings(environment) if environment.orchestrator == "eks" else {}),
            },
            job_environment=experiments.job_environment if environment.orchestrator == "slurm" else None,
            bucket=bucket.bucket if bucket is not None else None,
            prefix=bucket.prefix if bucket is not None else "lifecycle",
        )

    def _outputs(
        self,
        environment: Environment,
        cluster: HyperPodCluster,
        bundle: LifecycleBundle | None,
        ground: Foundations,
    ) -> None:
        CfnOutput(self, "ClusterName", value=cluster.cluster_name)
        CfnOutput(self, "ClusterArn", value=cluster.cluster_arn)
        if ground.lustre is not None:
            CfnOutput(self, "FileSystemId", value=ground.lustre.file_system.file_system_id)
        if ground.home is not None:
            CfnOutput(self, "HomeFileSystemId", value=ground.home.file_system.file_system_id)
        CfnOutput(self, "DataBucketName", value=ground.data.bucket.bucket_name)
        if bundle is not None:
            CfnOutput(self, "LifecycleBucketName", value=bundle.bucket.bucket_name)
        CfnOutput(self, "EventsLogGroupName", value=ground.events.log_group.log_group_name)
        if environment.eks is not None and not environment.eks.install_on_nodes:
            CfnOutput(self, "NotInstalled", value="CoreDNS, add-ons, operators, agents")
        if environment.network.existing is None or environment.network.existing.vpc_id is not None:
            CfnOutput(self, "VpcId", value=ground.network.vpc.vpc_id)


def _with_mounts(
    environment: Environment, groups: Sequence[InstanceGroup], home: OpenZfsMount | None
) -> list[InstanceGroup]:
    """Groups that do not mount Lustre mount what is left."""
    left = [] if home is None else [home]
    pairs = zip(groups, environment.cluster.instance_groups, strict=True)
    return [group if setting.mount_lustre else replace(group, mounts=left) for group, setting in pairs]


def _boundary(stack: Stack, policy: str) -> None:
    """Give every role of the stack, those of custom resources too, a permissions boundary that is there already."""
    found = (
        iam.ManagedPolicy.from_managed_policy_arn(stack, "PermissionsBoundary", policy)
        if policy.startswith("arn:")
        else iam.ManagedPolicy.from_managed_policy_name(stack, "PermissionsBoundary", policy)
    )
    iam.PermissionsBoundary.of(stack).apply(found)


def _below(mount_path: str, path: str) -> str:
    return mount_path if path == "/" else f"{mount_path}{path}"


def _tiered_storage(environment: Environment) -> TieredStorage | None:
    tiered = environment.cluster.tiered_storage
    return None if tiered is None else TieredStorage(memory_percentage=tiered.memory_percentage)


def _tags(environment: Environment) -> dict[str, str]:
    stand_ins = environment.stand_ins.model_dump(exclude_none=True)
    return {
        **environment.cluster.tags,
        "holdfast:environment": environment.name,
        **{f"holdfast:stand-in:{what}": by for what, by in stand_ins.items()},
    }
