import inspect
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from aws_cdk.aws_sagemaker import CfnCluster

from holdfast_constructs.cluster.lifecycle_config import Lifecycle
from holdfast_constructs.cluster.orchestrators import AccountingDatabase, EksOrchestrator, SlurmOrchestrator
from holdfast_constructs.groups import (
    AutoPatch,
    BatchSize,
    Deployment,
    EbsVolume,
    InstanceGroup,
    OverrideVpc,
    RestrictedEnvironment,
    RestrictedInstanceGroup,
    RestrictedLustre,
    ScheduledUpdate,
)
from holdfast_constructs.storage import LustreMount, Mount


@dataclass(frozen=True, kw_only=True)
class Nodes:
    role: iam.IRole
    lifecycle: Lifecycle
    mounts: Sequence[Mount]

    def group(self, group: InstanceGroup) -> CfnCluster.ClusterInstanceGroupProperty:
        mounts = self.mounts if group.mounts is None else group.mounts
        return CfnCluster.ClusterInstanceGroupProperty(
            **_same(group, CfnCluster.ClusterInstanceGroupProperty) | {"network_interface": _interface(group)},
            instance_group_name=group.name,
            instance_requirements=_requirements(group),
            execution_role=(group.role or self.role).role_arn,
            life_cycle_config=self.lifecycle.property(group),
            instance_storage_configs=[*_root_volume(group), *_volumes(group.volumes), *_mounts(mounts)] or None,
            capacity_requirements=_capacity(group),
            on_start_deep_health_checks=list(group.deep_health_checks) or None,
            scheduled_update_config=None if group.scheduled_update is None else _scheduled(group.scheduled_update),
            auto_patch_config=None if group.auto_patch is None else _auto_patch(group.auto_patch),
            override_vpc_config=_override(group.override_vpc),
            slurm_config=_slurm(group),
            kubernetes_config=_kubernetes(group),
        )

    def restricted(self, group: RestrictedInstanceGroup) -> CfnCluster.ClusterRestrictedInstanceGroupProperty:
        environment = None
        if group.lustre is not None:
            environment = CfnCluster.EnvironmentConfigProperty(f_sx_lustre_config=_restricted_lustre(group.lustre))
        return CfnCluster.ClusterRestrictedInstanceGroupProperty(
            **_same(group, CfnCluster.ClusterRestrictedInstanceGroupProperty),
            instance_group_name=group.name,
            execution_role=(group.role or self.role).role_arn,
            instance_storage_configs=_volumes(group.volumes) or None,
            on_start_deep_health_checks=list(group.deep_health_checks) or None,
            override_vpc_config=_override(group.override_vpc),
            environment_config=environment,
        )


def _same(of: object, structure: type) -> dict[str, Any]:
    """Attributes that CloudFormation has under the same name."""
    taken = inspect.signature(structure).parameters
    return {name: value for name, value in vars(of).items() if name in taken}


def shared_environment(environment: RestrictedEnvironment) -> CfnCluster.RestrictedInstanceGroupsConfigProperty:
    return CfnCluster.RestrictedInstanceGroupsConfigProperty(
        shared_environment_config=CfnCluster.SharedEnvironmentConfigProperty(
            f_sx_lustre_deletion_policy=environment.lustre_deletion_policy,
            f_sx_lustre_config=None if environment.lustre is None else _restricted_lustre(environment.lustre),
        )
    )


def orchestrator_property(
    orchestrator: SlurmOrchestrator | EksOrchestrator, *, continuous: bool
) -> CfnCluster.OrchestratorProperty:
    """Always sets Slurm's strategy, because the service's documents disagree about the default."""
    if isinstance(orchestrator, EksOrchestrator):
        eks = CfnCluster.ClusterOrchestratorEksConfigProperty(cluster_arn=orchestrator.control_plane.cluster_arn)
        return CfnCluster.OrchestratorProperty(eks=eks)
    database = orchestrator.accounting_database
    return CfnCluster.OrchestratorProperty(
        slurm=CfnCluster.ClusterOrchestratorSlurmConfigProperty(
            # With continuous provisioning any value is an error (SageMaker developer guide, "Continuous provisioning
            # for enhanced cluster operations with Slurm").
            slurm_config_strategy=None if continuous else orchestrator.config_strategy,
            accounting_database=None if database is None else _accounting(database),
        )
    )


def vpc_property(
    subnets: Sequence[ec2.ISubnet], security_groups: Sequence[ec2.ISecurityGroup]
) -> CfnCluster.VpcConfigProperty:
    return CfnCluster.VpcConfigProperty(
        security_group_ids=[group.security_group_id for group in security_groups],
        subnets=[subnet.subnet_id for subnet in subnets],
    )


def _accounting(database: AccountingDatabase) -> CfnCluster.ClusterAccountingDatabaseProperty:
    return CfnCluster.ClusterAccountingDatabaseProperty(
        endpoint=database.endpoint, secret_arn=database.secret.secret_arn, port=database.port, name=database.name
    )


def _requirements(group: InstanceGroup) -> CfnCluster.InstanceRequirementsProperty | None:
    if not group.instance_types:
        return None
    return CfnCluster.InstanceRequirementsProperty(instance_types=list(group.instance_types))


def _capacity(group: InstanceGroup) -> CfnCluster.ClusterCapacityRequirementsProperty | None:
    if group.capacity is None:
        return None
    nothing: dict[str, object] = {}
    spot = group.capacity == "spot"
    return CfnCluster.ClusterCapacityRequirementsProperty(
        spot=nothing if spot else None, on_demand=None if spot else nothing
    )


def _interface(group: InstanceGroup) -> CfnCluster.ClusterNetworkInterfaceProperty | None:
    kind = group.network_interface
    return None if kind is None else CfnCluster.ClusterNetworkInterfaceProperty(interface_type=kind)


def _override(override: OverrideVpc | None) -> CfnCluster.VpcConfigProperty | None:
    return None if override is None else vpc_property(override.subnets, override.security_groups)


def _slurm(group: InstanceGroup) -> CfnCluster.ClusterSlurmConfigProperty | None:
    if group.node_type is None:
        return None
    names = None if group.partition is None else [group.partition]
    return CfnCluster.ClusterSlurmConfigProperty(node_type=group.node_type, partition_names=names)


def _kubernetes(group: InstanceGroup) -> CfnCluster.ClusterKubernetesConfigProperty | None:
    if not group.labels and not group.taints:
        return None
    taints = [
        CfnCluster.ClusterKubernetesTaintProperty(key=taint.key, value=taint.value, effect=taint.effect)
        for taint in group.taints
    ]
    return CfnCluster.ClusterKubernetesConfigProperty(labels=dict(group.labels) or None, taints=taints or None)


def _root_volume(group: InstanceGroup) -> list[CfnCluster.ClusterInstanceStorageConfigProperty]:
    if group.root_volume_key is None:
        return []
    volume = CfnCluster.ClusterEbsVolumeConfigProperty(
        root_volume=True, volume_kms_key_id=group.root_volume_key.key_arn
    )
    return [CfnCluster.ClusterInstanceStorageConfigProperty(ebs_volume_config=volume)]


def _volumes(volumes: Sequence[EbsVolume]) -> list[CfnCluster.ClusterInstanceStorageConfigProperty]:
    return [
        CfnCluster.ClusterInstanceStorageConfigProperty(
            ebs_volume_config=CfnCluster.ClusterEbsVolumeConfigProperty(
                volume_size_in_gb=volume.size_gib,
                volume_kms_key_id=None if volume.key is None else volume.key.key_arn,
            )
        )
        for volume in volumes
    ]


def _mounts(mounts: Sequence[Mount]) -> list[CfnCluster.ClusterInstanceStorageConfigProperty]:
    return [_mount(mount) for mount in mounts]


def _mount(mount: Mount) -> CfnCluster.ClusterInstanceStorageConfigProperty:
    if isinstance(mount, LustreMount):
        lustre = CfnCluster.ClusterFsxLustreConfigProperty(
            dns_name=mount.file_system.dns_name,
            mount_name=mount.file_system.mount_name,
            mount_path=mount.mount_path,
        )
        return CfnCluster.ClusterInstanceStorageConfigProperty(fsx_lustre_config=lustre)
    open_zfs = CfnCluster.ClusterFsxOpenZfsConfigProperty(
        dns_name=mount.file_system.dns_name, mount_path=mount.mount_path
    )
    return CfnCluster.ClusterInstanceStorageConfigProperty(fsx_open_zfs_config=open_zfs)


def _restricted_lustre(lustre: RestrictedLustre) -> CfnCluster.FSxLustreConfigProperty:
    return CfnCluster.FSxLustreConfigProperty(
        size_in_gib=lustre.storage_capacity_gib, per_unit_storage_throughput=lustre.per_unit_storage_throughput
    )


def _scheduled(update: ScheduledUpdate) -> CfnCluster.ScheduledUpdateConfigProperty:
    return CfnCluster.ScheduledUpdateConfigProperty(
        schedule_expression=update.schedule_expression, deployment_config=_deployment(update.deployment)
    )


def _auto_patch(patch: AutoPatch) -> CfnCluster.AutoPatchConfigProperty:
    return CfnCluster.AutoPatchConfigProperty(patching_strategy=patch.strategy)


def _deployment(deployment: Deployment | None) -> CfnCluster.DeploymentConfigProperty | None:
    if deployment is None:
        return None
    rolling = None
    if deployment.maximum_batch_size is not None:
        rollback = deployment.rollback_maximum_batch_size
        rolling = CfnCluster.RollingUpdatePolicyProperty(
            maximum_batch_size=_batch(deployment.maximum_batch_size),
            rollback_maximum_batch_size=None if rollback is None else _batch(rollback),
        )
    wait = deployment.wait_interval
    alarms = [CfnCluster.AlarmDetailsProperty(alarm_name=alarm.alarm_name) for alarm in deployment.rollback_alarms]
    return CfnCluster.DeploymentConfigProperty(
        rolling_update_policy=rolling,
        wait_interval_in_seconds=None if wait is None else wait.to_seconds(),
        auto_rollback_configuration=alarms or None,
    )


def _batch(size: BatchSize) -> CfnCluster.CapacitySizeConfigProperty:
    return CfnCluster.CapacitySizeConfigProperty(type=size.type, value=size.value)
