"""The one stack of an environment."""

from pathlib import Path

from aws_cdk import CfnOutput, RemovalPolicy, Stack
from aws_cdk import Environment as CdkEnvironment
from aws_cdk import aws_ecr as ecr
from constructs import Construct

from holdfast.config import Environment
from holdfast_constructs import (
    DataBucket,
    DataRepository,
    EventLogGroup,
    HyperPodCluster,
    HyperPodNetwork,
    InstanceGroup,
    LifecycleBundle,
    LustreFileSystem,
    LustreMount,
)

ROOT = Path(__file__).resolve().parents[1]
LIFECYCLE_SOURCES = (
    ROOT / "lifecycle" / "on_create.sh",
    ROOT / "lifecycle" / "holdfast_lifecycle",
    ROOT / "containers" / "common" / "holdfast_common",
)
EVENTS_PATH = "/var/log/holdfast/events.jsonl"
"""Where lifecycle and jobs write events on a node."""


class HyperPodStack(Stack):
    """A HyperPod cluster with its network, storage, scripts and event log."""

    def __init__(self, scope: Construct, construct_id: str, *, environment: Environment) -> None:
        super().__init__(
            scope,
            construct_id,
            stack_name=environment.stack_name,
            env=CdkEnvironment(account=environment.account, region=environment.region),
            description=f"HyperPod cluster {environment.cluster_name}, made by Holdfast",
        )
        self._zone = environment.network.availability_zone
        removal_policy = _removal_policy(environment)
        groups = _instance_groups(environment)
        network = HyperPodNetwork(
            self,
            "Network",
            cidr=environment.network.cidr,
            availability_zone=environment.network.availability_zone,
            instance_groups=groups,
            egress=environment.network.egress,
            removal_policy=removal_policy,
        )
        data = DataBucket(self, "Data", removal_policy=removal_policy)
        lustre = self._lustre(environment, network, data, removal_policy)
        events = EventLogGroup(self, "Events", cluster_name=environment.cluster_name, removal_policy=removal_policy)
        bundle = self._lifecycle(environment)
        cluster = HyperPodCluster(
            self,
            "Cluster",
            cluster_name=environment.cluster_name,
            network=network,
            instance_groups=groups,
            lifecycle=bundle,
            lustre=LustreMount(file_system=lustre, mount_path=environment.storage.lustre.mount_path),
            slurm_config_strategy=environment.slurm.config_strategy,
            node_recovery=environment.cluster.node_recovery,
            tags=_tags(environment),
        )
        data.bucket.grant_read_write(cluster.role)
        events.log_group.grant_write(cluster.role)
        self._grant_image(environment, cluster)

        CfnOutput(self, "ClusterName", value=cluster.cluster_name)
        CfnOutput(self, "ClusterArn", value=cluster.cluster_arn)
        CfnOutput(self, "FileSystemId", value=lustre.file_system_id)
        CfnOutput(self, "DataBucketName", value=data.bucket.bucket_name)
        CfnOutput(self, "LifecycleBucketName", value=bundle.bucket.bucket_name)
        CfnOutput(self, "EventsLogGroupName", value=events.log_group.log_group_name)
        CfnOutput(self, "VpcId", value=network.vpc.vpc_id)

    @property
    def availability_zones(self) -> list[str]:
        """The zone of the environment file; without this the CDK would look up all zones and synthesise again."""
        return [self._zone]

    def _lustre(
        self, environment: Environment, network: HyperPodNetwork, data: DataBucket, removal_policy: RemovalPolicy
    ) -> LustreFileSystem:
        settings = environment.storage.lustre
        return LustreFileSystem(
            self,
            "Lustre",
            subnet=network.subnet,
            security_group=network.security_group,
            storage_capacity_gib=settings.capacity_gib,
            per_unit_storage_throughput=settings.throughput_mbps_per_tib,
            data_repositories=[
                DataRepository(
                    name=dataset.name,
                    bucket=data.bucket,
                    prefix=dataset.s3_prefix,
                    file_system_path=dataset.file_system_path,
                    auto_import=dataset.auto_import,
                    auto_export=dataset.auto_export,
                )
                for dataset in settings.datasets
            ],
            removal_policy=removal_policy,
        )

    def _lifecycle(self, environment: Environment) -> LifecycleBundle:
        return LifecycleBundle(
            self,
            "Lifecycle",
            name=environment.name,
            sources=LIFECYCLE_SOURCES,
            config={
                "cluster_name": environment.cluster_name,
                "users": [user.model_dump() for user in environment.lifecycle.users],
                "fsx_mount_path": environment.storage.lustre.mount_path,
                "events_path": EVENTS_PATH,
            },
        )

    def _grant_image(self, environment: Environment, cluster: HyperPodCluster) -> None:
        image = environment.images.training if environment.images is not None else None
        if image is not None and image.repository is not None:
            ecr.Repository.from_repository_name(self, "TrainingImage", image.repository).grant_pull(cluster.role)


def _instance_groups(environment: Environment) -> list[InstanceGroup]:
    return [
        InstanceGroup(
            name=group.name,
            instance_type=group.instance_type,
            instance_count=group.total_count,
            node_type=group.slurm.node_type,
            partition=group.slurm.partition,
            threads_per_core=2 if group.threads_per_core == 2 else 1,
            volume_gib=group.volume_gib,
        )
        for group in environment.cluster.instance_groups
    ]


def _removal_policy(environment: Environment) -> RemovalPolicy:
    return RemovalPolicy.DESTROY if environment.storage.on_delete == "Delete" else RemovalPolicy.RETAIN


def _tags(environment: Environment) -> dict[str, str]:
    stand_ins = environment.stand_ins.model_dump(exclude_none=True)
    return {
        "holdfast:environment": environment.name,
        **{f"holdfast:stand-in:{what}": by for what, by in stand_ins.items()},
    }
