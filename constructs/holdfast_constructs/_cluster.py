"""The HyperPod cluster."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from aws_cdk import CfnTag
from aws_cdk import aws_iam as iam
from aws_cdk import aws_sagemaker as sagemaker
from constructs import Construct

from holdfast_constructs._execution_role import execution_role
from holdfast_constructs._instance_group import InstanceGroup
from holdfast_constructs._lifecycle_bundle import LifecycleBundle
from holdfast_constructs._lustre import LustreFileSystem
from holdfast_constructs._network import HyperPodNetwork

READ_ACTIONS = [
    "sagemaker:DescribeCluster",
    "sagemaker:DescribeClusterEvent",
    "sagemaker:DescribeClusterNode",
    "sagemaker:ListClusterEvents",
    "sagemaker:ListClusterNodes",
]
NODE_ACTIONS = [
    "sagemaker:BatchDeleteClusterNodes",
    "sagemaker:BatchRebootClusterNodes",
    "sagemaker:BatchReplaceClusterNodes",
]


@dataclass(frozen=True, kw_only=True)
class LustreMount:
    """A file system on every node."""

    file_system: LustreFileSystem
    mount_path: str = "/fsx"
    """Default: "/fsx"."""


class IHyperPodCluster(Protocol):
    """What can be asked of a cluster, whether this app owns it or not."""

    cluster_arn: str

    def grant_read(self, grantee: iam.IGrantable) -> iam.Grant:
        """Allow ``grantee`` to see the cluster, its nodes and its events."""
        ...

    def grant_manage_nodes(self, grantee: iam.IGrantable) -> iam.Grant:
        """Allow ``grantee`` to reboot, replace and delete nodes."""
        ...


class _ClusterBase(Construct):
    """What owned and imported clusters share; it relies on the ARN alone."""

    cluster_arn: str

    def grant_read(self, grantee: iam.IGrantable) -> iam.Grant:
        """Allow ``grantee`` to see the cluster, its nodes and its events."""
        return iam.Grant.add_to_principal(grantee=grantee, actions=READ_ACTIONS, resource_arns=[self.cluster_arn])

    def grant_manage_nodes(self, grantee: iam.IGrantable) -> iam.Grant:
        """Allow ``grantee`` to reboot, replace and delete nodes."""
        return iam.Grant.add_to_principal(grantee=grantee, actions=NODE_ACTIONS, resource_arns=[self.cluster_arn])


class HyperPodCluster(_ClusterBase):
    """A HyperPod cluster with Slurm, configured through the API."""

    cluster_name: str
    role: iam.IRole

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        cluster_name: str,
        network: HyperPodNetwork,
        instance_groups: Sequence[InstanceGroup],
        lifecycle: LifecycleBundle,
        lustre: LustreMount | None = None,
        slurm_config_strategy: Literal["Overwrite", "Managed", "Merge"] = "Managed",
        node_recovery: Literal["Automatic", "None"] = "Automatic",
        tags: Mapping[str, str] | None = None,
    ) -> None:
        """
        Define a cluster.

        Args:
            cluster_name: Changing it replaces the cluster.
            network: Where the nodes are. Changing it replaces the cluster.
            instance_groups: Names must be unique, and exactly one group is the Controller.
            lifecycle: What runs on new nodes. Its prefix is delivered before the cluster is made.
            lustre: Default: no file system is mounted.
            slurm_config_strategy: Default: "Managed", an update fails when slurm.conf was edited by hand.
            node_recovery: Default: "Automatic", HyperPod replaces or reboots nodes that it finds faulty.
            tags: Default: no tags.
        """
        super().__init__(scope, construct_id)
        _check(instance_groups)
        self.cluster_name = cluster_name
        self.role = execution_role(self, "Role", network=network)
        lifecycle.grant_read(self.role)
        resource = sagemaker.CfnCluster(
            self,
            "Resource",
            cluster_name=cluster_name,
            instance_groups=[self._group(group, lifecycle, lustre) for group in instance_groups],
            node_recovery=node_recovery,
            orchestrator=sagemaker.CfnCluster.OrchestratorProperty(
                # Always said: the service's documents disagree about the default.
                slurm=sagemaker.CfnCluster.ClusterOrchestratorSlurmConfigProperty(
                    slurm_config_strategy=slurm_config_strategy
                )
            ),
            vpc_config=sagemaker.CfnCluster.VpcConfigProperty(
                security_group_ids=[network.security_group.security_group_id],
                subnets=[network.subnet.subnet_id],
            ),
            tags=[CfnTag(key=key, value=value) for key, value in sorted((tags or {}).items())] or None,
        )
        # Nodes boot at once: routes, rules, policies, scripts and links to S3 have to be there before.
        resource.node.add_dependency(network, self.role, lifecycle)
        if lustre is not None:
            resource.node.add_dependency(lustre.file_system)
        self.cluster_arn = resource.attr_cluster_arn

    @staticmethod
    def from_cluster_arn(scope: Construct, construct_id: str, *, cluster_arn: str) -> IHyperPodCluster:
        """Refer to a cluster that this app does not own."""
        imported = _ClusterBase(scope, construct_id)
        imported.cluster_arn = cluster_arn
        return imported

    def _group(
        self, group: InstanceGroup, lifecycle: LifecycleBundle, lustre: LustreMount | None
    ) -> sagemaker.CfnCluster.ClusterInstanceGroupProperty:
        return sagemaker.CfnCluster.ClusterInstanceGroupProperty(
            instance_group_name=group.name,
            instance_type=group.instance_type,
            instance_count=group.instance_count,
            execution_role=self.role.role_arn,
            threads_per_core=group.threads_per_core,
            life_cycle_config=sagemaker.CfnCluster.ClusterLifeCycleConfigProperty(
                on_create=lifecycle.on_create, source_s3_uri=lifecycle.source_s3_uri
            ),
            instance_storage_configs=_storage(group, lustre) or None,
            slurm_config=sagemaker.CfnCluster.ClusterSlurmConfigProperty(
                node_type=group.node_type,
                partition_names=None if group.partition is None else [group.partition],
            ),
        )


def _storage(
    group: InstanceGroup, lustre: LustreMount | None
) -> list[sagemaker.CfnCluster.ClusterInstanceStorageConfigProperty]:
    configs = []
    if group.volume_gib is not None:
        volume = sagemaker.CfnCluster.ClusterEbsVolumeConfigProperty(volume_size_in_gb=group.volume_gib)
        configs.append(sagemaker.CfnCluster.ClusterInstanceStorageConfigProperty(ebs_volume_config=volume))
    if lustre is not None:
        mount = sagemaker.CfnCluster.ClusterFsxLustreConfigProperty(
            dns_name=lustre.file_system.dns_name,
            mount_name=lustre.file_system.mount_name,
            mount_path=lustre.mount_path,
        )
        configs.append(sagemaker.CfnCluster.ClusterInstanceStorageConfigProperty(fsx_lustre_config=mount))
    return configs


def _check(groups: Sequence[InstanceGroup]) -> None:
    names = [group.name for group in groups]
    repeated = sorted({name for name in names if names.count(name) > 1})
    if repeated:
        raise ValueError(f"instance groups: got {', '.join(repeated)} more than once; allowed: unique names")
    controllers = [group.name for group in groups if group.node_type == "Controller"]
    if len(controllers) != 1:
        raise ValueError(
            f"instance groups: got {len(controllers)} of node type Controller ({', '.join(controllers) or 'none'}); "
            "allowed: exactly one"
        )
