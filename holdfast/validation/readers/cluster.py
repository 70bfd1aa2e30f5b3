"""Reader of clusters: instance groups, orchestrator, and the readers that they use."""

from typing import Any

from holdfast.validation.cloudformation import UNRESOLVED, Node, Order, Resource, Values, optional
from holdfast.validation.model import (
    AccountingDatabase,
    Cluster,
    InstanceGroup,
    RestrictedGroup,
    Slurm,
    VpcConfig,
)
from holdfast.validation.readers.eks import EksReader
from holdfast.validation.readers.governance import GovernanceReader
from holdfast.validation.readers.iam import RoleReader
from holdfast.validation.readers.lifecycle import LifecycleReader
from holdfast.validation.readers.network import NetworkReader
from holdfast.validation.readers.node_pools import NodePoolReader
from holdfast.validation.readers.properties import each_of, read_item
from holdfast.validation.readers.storage import StorageReader
from holdfast.validation.readers.updates import UpdateReader


class ClusterReader:
    def __init__(self, values: Values) -> None:
        order = Order(values.graph)
        self._values = values
        self.network = NetworkReader(values)
        self.storage = StorageReader(values, self.network, order)
        self.control_planes = EksReader(values, self.network, order)
        self.roles = RoleReader(values)
        self.teams = GovernanceReader(values)
        self.pools = NodePoolReader(values)
        self._lifecycle = LifecycleReader(values)
        self._updates = UpdateReader(values)

    def cluster(self, resource: Resource) -> Cluster:
        properties = self._values.properties(resource)
        orchestrator = properties.get("Orchestrator")
        tiered = properties.get("TieredStorageConfig")
        scaling = properties.get("AutoScaling")
        return read_item(
            Cluster,
            properties,
            instance_groups=each_of(properties.get("InstanceGroups"), self._group),
            restricted_groups=each_of(properties.get("RestrictedInstanceGroups"), self._restricted_group),
            vpc=optional(properties.get("VpcConfig"), self._vpc),
            slurm=optional(orchestrator.get("Slurm"), _slurm),
            eks=optional(orchestrator.get("Eks"), lambda node: self.control_planes.eks(node, resource)),
            role=self.roles.role(properties.get("ClusterRole")),
            tags=properties.get("Tags").mapping("Key", "Value"),
            auto_scaler=_switched(scaling, scaling.get("AutoScalerType").text() or "Karpenter"),
            tiered_storage_percent=_switched(tiered, tiered.get("InstanceMemoryAllocationPercentage").integer()),
            has_role=_is_there(properties.get("ClusterRole")),
        )

    def _vpc(self, node: Node) -> VpcConfig:
        return self.network.vpc_config(node, subnets=node.get("Subnets"), security_groups=node.get("SecurityGroupIds"))

    def _placed(self, node: Node) -> dict[str, Any]:
        return {
            "override_vpc": optional(node.get("OverrideVpcConfig"), self._vpc),
            "role": self.roles.role(node.get("ExecutionRole")),
        }

    def _group(self, node: Node) -> InstanceGroup:
        volumes, mounts = self.storage.volumes_and_mounts(node.get("InstanceStorageConfigs"))
        return read_item(
            InstanceGroup,
            node,
            **self._placed(node),
            capacity=_capacity(node.get("CapacityRequirements")),
            volumes=volumes,
            mounts=mounts,
            lifecycle=optional(node.get("LifeCycleConfig"), self._lifecycle.lifecycle),
            labels=node.get("KubernetesConfig", "Labels").mapping(),
            scheduled_update=optional(node.get("ScheduledUpdateConfig"), self._updates.scheduled_update),
            auto_patch=optional(node.get("AutoPatchConfig"), self._updates.auto_patch),
        )

    def _restricted_group(self, node: Node) -> RestrictedGroup:
        volumes = self.storage.volumes_and_mounts(node.get("InstanceStorageConfigs"))[0]
        return read_item(RestrictedGroup, node, **self._placed(node), volumes=volumes)


def _is_there(node: Node) -> Any:
    return UNRESOLVED if node.value is UNRESOLVED else node.present


def _switched(node: Node, value: Any) -> Any:
    mode = node.get("Mode").text()
    return UNRESOLVED if mode is UNRESOLVED else value if mode == "Enable" else None


def _slurm(node: Node) -> Slurm:
    return read_item(Slurm, node, accounting=optional(node.get("AccountingDatabase"), _accounting))


def _accounting(node: Node) -> AccountingDatabase:
    return read_item(
        AccountingDatabase,
        node,
        endpoint=_text_or_token(node.get("Endpoint")),
        secret_arn=_text_or_token(node.get("SecretArn")),
    )


def _text_or_token(node: Node) -> Any:
    text = node.text()
    return None if text is UNRESOLVED and node.is_attribute else text


def _capacity(node: Node) -> Any:
    keys = node.keys()
    if keys is None:
        return UNRESOLVED
    return "spot" if "Spot" in keys else "on-demand" if "OnDemand" in keys else None
