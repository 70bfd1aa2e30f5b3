"""The one stack of an environment."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from aws_cdk import Acknowledgment, CfnOutput, Stack, Validations
from aws_cdk import Environment as CdkEnvironment
from aws_cdk import aws_kms as kms
from constructs import Construct

from holdfast.config import Environment
from holdfast.validation.updates import environment_metadata
from holdfast_constructs import (
    AutoScaling,
    DataBucket,
    EksOrchestrator,
    EventLogGroup,
    HyperPodCluster,
    IHyperPodNetwork,
    InstanceGroup,
    LifecycleBundle,
    LustreMount,
    OpenZfsMount,
    TieredStorage,
)
from stacks import _foundations, _watch
from stacks._groups import Groups
from stacks._images import TrainingImage
from stacks._retention import retention

if TYPE_CHECKING:
    from holdfast_constructs import HyperPodEks, SlurmOrchestrator

ROOT = Path(__file__).resolve().parents[1]
LIFECYCLE_SOURCES = (
    ROOT / "lifecycle" / "on_create.sh",
    ROOT / "lifecycle" / "holdfast_lifecycle",
    ROOT / "containers" / "common" / "holdfast_common",
)
EVENTS_PATH = "/var/log/holdfast/events.jsonl"
"""Where lifecycle and jobs write events on a node."""


class HyperPodStack(Stack):
    """A HyperPod cluster with its network, storage, orchestrator, scripts, images and watch."""

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        environment: Environment,
        folder: Path = ROOT / "environments",
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
            env=CdkEnvironment(account=environment.account, region=environment.region),
            description=f"HyperPod cluster {environment.cluster_name}, made by Holdfast",
        )
        second = environment.network.control_plane_availability_zone
        self._zones = [environment.network.availability_zone, *([second] if second is not None else [])]
        self.template_options.metadata = environment_metadata(environment)
        for accepted in environment.suppress:
            acknowledgment = Acknowledgment(id=f"holdfast::{accepted.code}", reason=accepted.reason)
            Validations.of(self).acknowledge(acknowledgment)
        policy = _foundations.removal_policy(environment)
        key = _foundations.encryption_key(self, environment)
        settings = Groups(self, "Groups", environment=environment)
        groups = settings.instance_groups()
        network = _foundations.network(self, environment, groups=groups, key=key)
        data = DataBucket(self, "Data", encryption_key=key, removal_policy=policy)
        lustre = _foundations.lustre(self, environment, network=network, data=data, key=key)
        home = _foundations.home(self, environment, network=network, key=key)
        events = EventLogGroup(
            self,
            "Events",
            cluster_name=environment.cluster_name,
            retention=retention(environment.observability.log_retention_days),
            encryption_key=key,
            removal_policy=policy,
        )
        image = TrainingImage(self, environment)
        bundle = self._lifecycle(environment, image, folder)
        on_slurm = environment.orchestrator == "slurm"
        control_plane: HyperPodEks | None = None
        if environment.eks is not None:
            from stacks import _kubernetes  # loads what Slurm has no use for

            control_plane = _kubernetes.control_plane(
                self, environment, environment.eks, network=network, key=key, folder=folder
            )
        cluster = HyperPodCluster(
            self,
            "Cluster",
            cluster_name=environment.cluster_name,
            network=network,
            orchestrator=self._orchestrator(environment, control_plane, network, key),
            instance_groups=_with_mounts(environment, groups, home) if on_slurm else groups,
            restricted_instance_groups=settings.restricted_instance_groups(),
            restricted_environment=settings.restricted_environment(),
            lifecycle=bundle,
            lustre=lustre if on_slurm else None,
            home=home if on_slurm else None,
            node_recovery=environment.cluster.node_recovery,
            continuous_provisioning=environment.cluster.node_provisioning_mode == "Continuous",
            auto_scaling=None if environment.cluster.auto_scaler is None else AutoScaling(),
            tiered_storage=_tiered_storage(environment),
            tags=_tags(environment),
        )
        data.bucket.grant_read_write(cluster.role)
        events.log_group.grant_write(cluster.role)
        image.grant_pull(cluster.role)
        if control_plane is not None and lustre is not None and lustre.file_system.efa:
            lustre.file_system.grant_describe(cluster)  # pods mount it; without this, over TCP
            network.add_interface_endpoint("fsx")
        metrics = _watch.watch(
            self,
            environment,
            cluster=cluster,
            events=events,
            file_system_id=None if lustre is None else lustre.file_system.file_system_id,
            key=key,
        )
        _watch.experiments(self, environment, cluster=cluster, data=data)
        if environment.eks is not None and control_plane is not None:
            _kubernetes.addons(
                self,
                environment,
                environment.eks,
                control_plane=control_plane,
                cluster=cluster,
                lustre=lustre,
                prometheus=metrics.prometheus,
                grafana=metrics.grafana,
                key=key,
            )
        self._outputs(cluster, data, bundle, events, lustre, home, network.vpc.vpc_id)

    @property
    def availability_zones(self) -> list[str]:
        """The zones of the environment file; without this the CDK would look up all zones and synthesise again."""
        return self._zones

    def _orchestrator(
        self,
        environment: Environment,
        control_plane: "HyperPodEks | None",
        network: IHyperPodNetwork,
        key: kms.IKey | None,
    ) -> "SlurmOrchestrator | EksOrchestrator":
        if control_plane is not None:
            return EksOrchestrator(control_plane=control_plane)
        from stacks import _slurm  # loads what Kubernetes has no use for

        return _slurm.slurm(self, environment, network=network, key=key)

    def _lifecycle(self, environment: Environment, image: TrainingImage, folder: Path) -> LifecycleBundle:
        lustre = environment.storage.lustre
        mounting = [group.name for group in environment.cluster.instance_groups if group.mount_lustre]
        mounted = lustre is not None and environment.orchestrator == "slurm"
        return LifecycleBundle(
            self,
            "Lifecycle",
            name=environment.name,
            sources=LIFECYCLE_SOURCES,
            scripts=[folder / script for script in environment.lifecycle.scripts],
            config={
                "cluster_name": environment.cluster_name,
                "orchestrator": environment.orchestrator,
                "users": [user.model_dump() for user in environment.lifecycle.users],
                "fsx_mount_path": lustre.mount_path if lustre is not None and mounted else "",
                "fsx_instance_groups": mounting if mounted else [],
                "preload": [_below(lustre.mount_path, path) for path in lustre.preload] if lustre is not None else [],
                "events_path": EVENTS_PATH,
                "scripts": [Path(script).name for script in environment.lifecycle.scripts],
                "training_image": image.uri,
            },
        )

    def _outputs(
        self,
        cluster: HyperPodCluster,
        data: DataBucket,
        bundle: LifecycleBundle,
        events: EventLogGroup,
        lustre: LustreMount | None,
        home: OpenZfsMount | None,
        vpc_id: str,
    ) -> None:
        CfnOutput(self, "ClusterName", value=cluster.cluster_name)
        CfnOutput(self, "ClusterArn", value=cluster.cluster_arn)
        if lustre is not None:
            CfnOutput(self, "FileSystemId", value=lustre.file_system.file_system_id)
        if home is not None:
            CfnOutput(self, "HomeFileSystemId", value=home.file_system.file_system_id)
        CfnOutput(self, "DataBucketName", value=data.bucket.bucket_name)
        CfnOutput(self, "LifecycleBucketName", value=bundle.bucket.bucket_name)
        CfnOutput(self, "EventsLogGroupName", value=events.log_group.log_group_name)
        CfnOutput(self, "VpcId", value=vpc_id)


def _with_mounts(
    environment: Environment, groups: Sequence[InstanceGroup], home: OpenZfsMount | None
) -> list[InstanceGroup]:
    """Groups that do not mount Lustre mount what is left."""
    left = [] if home is None else [home]
    wanted = zip(groups, environment.cluster.instance_groups, strict=True)
    return [group if setting.mount_lustre else replace(group, mounts=left) for group, setting in wanted]


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
