"""Reader of clusters: instance groups, orchestrator, and the readers that they use."""

from typing import Any

from holdfast.validation.cloudformation import UNRESOLVED, Node, Order, Resource, Values, optional, required
from holdfast.validation.from_template.resources.eks import EksReader
from holdfast.validation.from_template.resources.governance import GovernanceReader
from holdfast.validation.from_template.resources.iam import RoleReader
from holdfast.validation.from_template.resources.lifecycle import LifecycleReader
from holdfast.validation.from_template.resources.network import NetworkReader
from holdfast.validation.from_template.resources.properties import places_of, read_properties
from holdfast.validation.from_template.resources.storage import StorageReader
from holdfast.validation.from_template.resources.updates import UpdateReader
from holdfast.validation.model import (
    AccountingDatabase,
    Cluster,
    Group,
    InstanceGroup,
    RestrictedGroup,
    RestrictedLustre,
    Slurm,
    Taint,
    VpcConfig,
)


class ClusterReader:
    def __init__(self, values: Values) -> None:
        order = Order(values.graph)
        self._values = values
        self.network = NetworkReader(values)
        self.storage = StorageReader(values, self.network, order)
        self.control_planes = EksReader(values, self.network, order)
        self.roles = RoleReader(values)
        self.teams = GovernanceReader(values)
        self._lifecycle = LifecycleReader(values)
        self._updates = UpdateReader(values)

    def cluster(self, resource: Resource) -> Cluster:
        properties = self._values.properties(resource)
        members = read_properties(Cluster, properties)
        orchestrator = properties.get("Orchestrator")
        tiered = properties.get("TieredStorageConfig")
        scaling = properties.get("AutoScaling")
        shared_lustre = properties.get("RestrictedInstanceGroupsConfig", "SharedEnvironmentConfig", "FSxLustreConfig")
        return Cluster(
            path=resource.path,
            places=places_of(Cluster, resource.path),
            instance_groups=_each(properties.get("InstanceGroups"), self._group),
            restricted_groups=_each(properties.get("RestrictedInstanceGroups"), self._restricted_group),
            restricted_lustre=optional(shared_lustre, _restricted_lustre),
            vpc=optional(properties.get("VpcConfig"), self._vpc),
            slurm=optional(orchestrator.get("Slurm"), _slurm),
            eks=optional(orchestrator.get("Eks"), lambda node: self.control_planes.eks(node, resource)),
            role=self.roles.role(properties.get("ClusterRole")),
            tags=properties.get("Tags").mapping("Key", "Value"),
            **{
                **members,
                "auto_scaler": _switched(scaling, members["auto_scaler"]),
                "tiered_storage_percent": _switched(tiered, members["tiered_storage_percent"]),
                "has_role": _is_there(properties.get("ClusterRole")),
            },
        )

    def _vpc(self, node: Node) -> VpcConfig:
        return self.network.vpc_config(node, subnets=node.get("Subnets"), security_groups=node.get("SecurityGroupIds"))

    def _common(self, kind: type[Group], node: Node) -> dict[str, Any]:
        return {
            **read_properties(kind, node),
            "path": node.path,
            "places": places_of(kind, node.path),
            "override_vpc": optional(node.get("OverrideVpcConfig"), self._vpc),
            "role": self.roles.role(node.get("ExecutionRole")),
        }

    def _group(self, node: Node) -> InstanceGroup:
        volumes, mounts = self.storage.volumes_and_mounts(node.get("InstanceStorageConfigs"))
        kubernetes = node.get("KubernetesConfig")
        return InstanceGroup(
            **self._common(InstanceGroup, node) | {"capacity": _capacity(node.get("CapacityRequirements"))},
            volumes=volumes,
            mounts=mounts,
            lifecycle=optional(node.get("LifeCycleConfig"), self._lifecycle.lifecycle),
            labels=kubernetes.get("Labels").mapping(),
            taints=_each(kubernetes.get("Taints"), _taint),
            scheduled_update=optional(node.get("ScheduledUpdateConfig"), self._updates.scheduled_update),
            auto_patch=optional(node.get("AutoPatchConfig"), self._updates.auto_patch),
        )

    def _restricted_group(self, node: Node) -> RestrictedGroup:
        return RestrictedGroup(
            **self._common(RestrictedGroup, node),
            volumes=self.storage.volumes_and_mounts(node.get("InstanceStorageConfigs"))[0],
            lustre=optional(node.get("EnvironmentConfig", "FSxLustreConfig"), _restricted_lustre),
        )


def _each(node: Node, read: Any) -> Any:
    """Item per entry; UNRESOLVED if an entry is a function that may return none."""
    entries = node.items()
    if entries is None or any(entry.keys() is None for entry in entries):
        return UNRESOLVED
    return tuple(read(entry) for entry in entries)


def _is_there(node: Node) -> Any:
    return UNRESOLVED if node.value is UNRESOLVED else node.present


def _switched(node: Node, value: Any) -> Any:
    mode = node.get("Mode").text()
    return UNRESOLVED if mode is UNRESOLVED else value if mode == "Enable" else None


def _slurm(node: Node) -> Slurm:
    return Slurm(
        path=node.path,
        places={
            "config_strategy": f"{node.path}.SlurmConfigStrategy",
            "accounting": f"{node.path}.AccountingDatabase",
        },
        config_strategy=node.get("SlurmConfigStrategy").text(),
        accounting=optional(node.get("AccountingDatabase"), _accounting),
    )


def _accounting(node: Node) -> AccountingDatabase:
    return AccountingDatabase(
        path=node.path,
        places={"endpoint": f"{node.path}.Endpoint", "secret_arn": f"{node.path}.SecretArn"},
        endpoint=_text_or_token(node.get("Endpoint")),
        secret_arn=_text_or_token(node.get("SecretArn")),
    )


def _text_or_token(node: Node) -> Any:
    text = node.text()
    return None if text is UNRESOLVED and node.is_attribute else text


def _restricted_lustre(node: Node) -> RestrictedLustre:
    return RestrictedLustre(
        path=node.path,
        places=places_of(RestrictedLustre, node.path),
        **read_properties(RestrictedLustre, node),
    )


def _capacity(node: Node) -> Any:
    keys = node.keys()
    if keys is None:
        return UNRESOLVED
    return "spot" if "Spot" in keys else "on-demand" if "OnDemand" in keys else None


def _taint(node: Node) -> Taint:
    return Taint(
        path=node.path,
        key=required(node.get("Key").text()),
        value=node.get("Value").text(),
        effect=required(node.get("Effect").text()),
    )
