"""From the instance groups of an environment to those of the constructs. Names and shapes only, nothing is decided."""

from collections.abc import Sequence
from dataclasses import replace

from aws_cdk import Duration
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from constructs import Construct

from holdfast import config
from holdfast_constructs import (
    AutoPatch,
    BatchSize,
    Deployment,
    EbsVolume,
    HyperPodNetwork,
    IHyperPodNetwork,
    ILifecycleScripts,
    InstanceGroup,
    LifecycleBundle,
    OverrideVpc,
    RestrictedEnvironment,
    RestrictedInstanceGroup,
    RestrictedLustre,
    ScheduledUpdate,
    Taint,
    key_by_name,
)
from holdfast_stacks.shared import shared
from holdfast_stacks.subnets import existing_subnet


class Groups(Construct):
    """The scope of what groups refer to and this app does not own: keys, alarms, subnets, security groups."""

    def __init__(self, scope: Construct, construct_id: str, *, environment: config.Environment) -> None:
        super().__init__(scope, construct_id)
        self._environment = environment
        self._keys: dict[str, kms.IKey] = {}

    def instance_groups(self) -> list[InstanceGroup]:
        """All groups, without the file systems that they mount."""
        return [self._group(group) for group in self._environment.cluster.instance_groups]

    def placed(self, groups: Sequence[InstanceGroup], network: IHyperPodNetwork) -> list[InstanceGroup]:
        """Groups with the subnet of their zone, where it is not the cluster's."""
        zones = {group.name: group.availability_zone for group in self._environment.cluster.instance_groups}
        return [self._in_zone(group, zones[group.name], network) for group in groups]

    def _in_zone(self, group: InstanceGroup, zone: str | None, network: IHyperPodNetwork) -> InstanceGroup:
        if zone is None or zone == self._environment.network.availability_zone:
            return group
        subnets = network.zone_subnets if isinstance(network, HyperPodNetwork) else {}
        if zone not in subnets:
            raise ValueError(
                f"instance group '{group.name}': got availability_zone {zone}; allowed: "
                f"{', '.join([str(self._environment.network.availability_zone), *subnets])}"
            )
        place = OverrideVpc(subnets=[subnets[zone]], security_groups=[network.security_group])
        return replace(group, override_vpc=place)

    def restricted_instance_groups(self) -> list[RestrictedInstanceGroup]:
        return [
            RestrictedInstanceGroup(
                **{
                    **shared(group, RestrictedInstanceGroup),
                    "override_vpc": self._override(group.name, group.override_vpc),
                    "lustre": _restricted_lustre(group.lustre),
                },
                volumes=[] if group.volume_gib is None else [EbsVolume(size_gib=group.volume_gib)],
                role=self._role(group.name, group.execution_role_arn),
            )
            for group in self._environment.cluster.restricted_instance_groups
        ]

    def restricted_environment(self) -> RestrictedEnvironment | None:
        shared = self._environment.cluster.restricted_environment
        if shared is None:
            return None
        return RestrictedEnvironment(
            lustre=_restricted_lustre(shared.lustre), lustre_deletion_policy=shared.lustre_deletion_policy
        )

    def _group(self, group: config.InstanceGroup) -> InstanceGroup:
        slurm, root = group.slurm, group.root_volume_kms_key
        return InstanceGroup(
            **{
                **shared(group, InstanceGroup),
                "instance_types": group.instance_types or (),
                "instance_count": group.total_count,
                "scheduled_update": self._scheduled_update(group),
                "auto_patch": None if group.auto_patch is None else AutoPatch(strategy=group.auto_patch.strategy),
                "override_vpc": self._override(group.name, group.override_vpc),
                "lifecycle_mode": self._environment.lifecycle_mode(group),
                "taints": [Taint(key=t.key, effect=t.effect, value=t.value or None) for t in group.taints],
            },
            root_volume_key=None if root is None else self._key(f"{group.name}-RootVolumeKey", root),
            volumes=self._volumes(group),
            role=self._role(group.name, group.execution_role_arn),
            lifecycle=self._scripts(group),
            node_type=None if slurm is None else slurm.node_type,
            partition=None if slurm is None else slurm.partition,
        )

    def _volumes(self, group: config.InstanceGroup) -> list[EbsVolume]:
        if group.volume_gib is None:
            return []
        key = group.volume_kms_key
        found = None if key is None else self._key(f"{group.name}-VolumeKey", key)
        return [EbsVolume(size_gib=group.volume_gib, key=found)]

    def _key(self, construct_id: str, name: str) -> kms.IKey:
        if name not in self._keys:
            self._keys[name] = key_by_name(self, construct_id, name)
        return self._keys[name]

    def role(self) -> iam.IRole | None:
        return self._role("Nodes", self._environment.cluster.execution_role_arn)

    def cluster_role(self) -> iam.IRole | None:
        return self._role("Cluster", self._environment.cluster.cluster_role_arn)

    def scripts(self) -> ILifecycleScripts | None:
        there = self._environment.lifecycle.existing
        return None if there is None else self._existing_scripts("Scripts", there)

    def _role(self, name: str, arn: str | None) -> iam.IRole | None:
        """Nothing is added to a role that is there already."""
        return None if arn is None else iam.Role.from_role_arn(self, f"{name}-Role", arn, mutable=False)

    def _scripts(self, group: config.InstanceGroup) -> ILifecycleScripts | None:
        own = group.life_cycle_config
        return None if own is None else self._existing_scripts(f"{group.name}-Scripts", own)

    def _existing_scripts(self, construct_id: str, there: config.LifeCycleConfig) -> ILifecycleScripts:
        return LifecycleBundle.from_source_s3_uri(
            self,
            construct_id,
            source_s3_uri=there.source_s3_uri.rstrip("/"),
            on_create=there.on_create,
            on_init_complete=there.on_init_complete,
        )

    def _override(self, group: str, override: config.OverrideVpc | None) -> OverrideVpc | None:
        if override is None:
            return None
        return OverrideVpc(
            subnets=[
                existing_subnet(self, f"{group}-Subnet{index}", name) for index, name in enumerate(override.subnet_ids)
            ],
            security_groups=[
                ec2.SecurityGroup.from_security_group_id(self, f"{group}-SecurityGroup{index}", name, mutable=False)
                for index, name in enumerate(override.security_group_ids)
            ],
        )

    def _scheduled_update(self, group: config.InstanceGroup) -> ScheduledUpdate | None:
        update = group.scheduled_update
        if update is None:
            return None
        deployment = self._deployment(f"{group.name}-ScheduledUpdate", update.deployment)
        return ScheduledUpdate(schedule_expression=update.schedule_expression, deployment=deployment)

    def _deployment(self, construct_id: str, deployment: config.Deployment | None) -> Deployment | None:
        if deployment is None:
            return None
        return Deployment(
            maximum_batch_size=_batch_size(deployment.maximum_batch_size),
            rollback_maximum_batch_size=_batch_size(deployment.rollback_maximum_batch_size),
            wait_interval=Duration.seconds(deployment.wait_interval_s),
            rollback_alarms=self._alarms(construct_id, deployment.rollback_alarms or ()),
        )

    def _alarms(self, construct_id: str, names: Sequence[str]) -> list[cloudwatch.IAlarm]:
        return [
            cloudwatch.Alarm.from_alarm_name(self, f"{construct_id}-Alarm{index}", name)
            for index, name in enumerate(names)
        ]


def _batch_size(size: config.BatchSize | None) -> BatchSize | None:
    return None if size is None else BatchSize(size.type, size.value)


def _restricted_lustre(lustre: config.RestrictedLustre | None) -> RestrictedLustre | None:
    if lustre is None:
        return None
    return RestrictedLustre(
        storage_capacity_gib=lustre.capacity_gib, per_unit_storage_throughput=lustre.throughput_mbps_per_tib
    )
