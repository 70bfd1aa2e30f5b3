from collections.abc import Sequence
from dataclasses import dataclass

from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam

from holdfast.validation import model, translation
from holdfast.validation.translation import Properties, properties_of
from holdfast_constructs.cluster.lifecycle_config import Lifecycle
from holdfast_constructs.cluster.orchestrators import EksOrchestrator, SlurmOrchestrator
from holdfast_constructs.groups import (
    EbsVolume,
    InstanceGroup,
    OverrideVpc,
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

    def group(self, group: InstanceGroup) -> Properties:
        mounts = self.mounts if group.mounts is None else group.mounts
        root = group.root_volume_key
        return translation.instance_group(
            group,
            role=(group.role or self.role).role_arn,
            lifecycle=self.lifecycle.properties(group),
            volumes=[
                *([] if root is None else [translation.ebs_volume(root=True, kms_key=root.key_arn)]),
                *_volumes(group.volumes),
            ],
            mounts=[_mount(mount) for mount in mounts],
            override_vpc=_override(group.override_vpc),
            scheduled_update=None if group.scheduled_update is None else _scheduled(group.scheduled_update),
            partitions=None if group.partition is None else [group.partition],
        )

    def restricted(self, group: RestrictedInstanceGroup) -> Properties:
        return properties_of(
            model.RestrictedGroup,
            group,
            role=(group.role or self.role).role_arn,
            volumes=_volumes(group.volumes),
            override_vpc=_override(group.override_vpc),
            lustre=restricted_lustre(group.lustre),
        )


def orchestrator_properties(
    orchestrator: SlurmOrchestrator | EksOrchestrator, *, continuous: bool
) -> dict[str, Properties]:
    """Always sets Slurm's strategy, because the service's documents disagree about the default."""
    if isinstance(orchestrator, EksOrchestrator):
        return {"eks": translation.eks_orchestrator(cluster_arn=orchestrator.control_plane.cluster_arn)}
    database = orchestrator.accounting_database
    slurm = translation.slurm_orchestrator(
        # With continuous provisioning any value is an error (SageMaker developer guide, "Continuous provisioning
        # for enhanced cluster operations with Slurm").
        config_strategy=None if continuous else orchestrator.config_strategy,
        accounting=None
        if database is None
        else properties_of(
            model.AccountingDatabase, database, secret_arn=database.secret.secret_arn, database=database.name
        ),
    )
    return {"slurm": slurm}


def vpc_properties(subnets: Sequence[ec2.ISubnet], security_groups: Sequence[ec2.ISecurityGroup]) -> Properties:
    return properties_of(
        model.VpcConfig,
        subnets=[subnet.subnet_id for subnet in subnets],
        security_groups=[group.security_group_id for group in security_groups],
    )


def restricted_lustre(lustre: RestrictedLustre | None) -> Properties | None:
    if lustre is None:
        return None
    return properties_of(
        model.RestrictedLustre,
        capacity_gib=lustre.storage_capacity_gib,
        throughput_mbps_per_tib=lustre.per_unit_storage_throughput,
    )


def _override(override: OverrideVpc | None) -> Properties | None:
    return None if override is None else vpc_properties(override.subnets, override.security_groups)


def _volumes(volumes: Sequence[EbsVolume]) -> list[Properties]:
    return [
        translation.ebs_volume(size_gib=each.size_gib, kms_key=None if each.key is None else each.key.key_arn)
        for each in volumes
    ]


def _mount(mount: Mount) -> Properties:
    if isinstance(mount, LustreMount):
        lustre = mount.file_system
        return translation.mount(
            "lustre", dns_name=lustre.dns_name, mount_name=lustre.mount_name, mount_path=mount.mount_path
        )
    return translation.mount("openzfs", dns_name=mount.file_system.dns_name, mount_path=mount.mount_path)


def _scheduled(update: ScheduledUpdate) -> Properties:
    rolling = update.deployment
    if rolling is None:
        return properties_of(model.ScheduledUpdate, update)
    deployment = properties_of(
        model.RollingUpdate,
        rolling,
        wait_interval_s=None if rolling.wait_interval is None else rolling.wait_interval.to_seconds(),
        rollback_alarms=[alarm.alarm_name for alarm in rolling.rollback_alarms],
    )
    return properties_of(model.ScheduledUpdate, update, deployment=deployment)
