"""Reader of FSx file systems: Lustre with data repository associations, OpenZFS, and their mounts."""

import re
from collections.abc import Iterable
from dataclasses import fields
from typing import Any

from holdfast.catalog import ASSOCIATION, FILE_SYSTEM
from holdfast.validation.cloudformation import UNRESOLVED, Node, Order, Reference, Resource, Text, Values, required
from holdfast.validation.model import DataRepositoryAssociation, LustreFileSystem, Mount, OpenZfsFileSystem, Volume
from holdfast.validation.readers.network import NetworkReader
from holdfast.validation.readers.properties import read_item

LUSTRE = "FsxLustreConfig"
OPENZFS = "FsxOpenZfsConfig"
_KEPT = ("Retain", "RetainExceptOnCreate")


class StorageReader:
    def __init__(self, values: Values, network: NetworkReader, order: Order) -> None:
        self._values = values
        self._network = network
        self._order = order

    def volumes_and_mounts(self, configs: Node) -> tuple[Any, Any]:
        """InstanceStorageConfigs of a group; both UNRESOLVED if an entry may be either."""
        entries = configs.items()
        if entries is None or any(entry.keys() is None for entry in entries):
            return UNRESOLVED, UNRESOLVED
        volumes, mounts = [], []
        for entry in entries:
            for kind, key in (("lustre", LUSTRE), ("openzfs", OPENZFS)):
                if not entry.get(key).known and entry.get(key).present:
                    return UNRESOLVED, UNRESOLVED
                if entry.get(key).present:
                    mounts.append(self._mount(entry.get(key), kind))
            if entry.get("EbsVolumeConfig").present:
                volumes.append(_volume(entry.get("EbsVolumeConfig")))
        return tuple(volumes), tuple(mounts)

    def file_systems(self, cluster: Resource) -> tuple[Any, Any]:
        """
        Lustre and OpenZFS file systems that a cluster mounts, and those that no cluster mounts.

        An external Lustre file system has no known attributes. Both are UNRESOLVED if a type is unknown.
        """
        chosen: list[Resource] = []
        mounted = {each: self._mounted(each) for each in self._values.graph.of_type("AWS::SageMaker::Cluster")}
        others = set().union(*(found for each, found in mounted.items() if each is not cluster))
        for resource in self._values.graph.of_type(FILE_SYSTEM):
            beside = resource.template is cluster.template and resource not in others
            if resource not in mounted[cluster] and not beside:
                continue
            chosen.append(resource)
        lustre, openzfs = self.all_file_systems(chosen)
        if lustre is UNRESOLVED:
            return UNRESOLVED, UNRESOLVED
        if not self._values.graph.complete:
            return UNRESOLVED, UNRESOLVED
        strangers = {name.token: name.path for name in self._mounted_names(cluster, LUSTRE) if _is_strange(name)}
        return (*lustre, *map(_unknown_lustre, strangers.values())), openzfs

    def all_file_systems(self, resources: Iterable[Resource]) -> tuple[Any, Any]:
        """Lustre and OpenZFS file systems; both UNRESOLVED if a type is unknown."""
        lustre: list[LustreFileSystem] = []
        openzfs: list[OpenZfsFileSystem] = []
        for resource in resources:
            kind = self._values.properties(resource).get("FileSystemType").text()
            if kind == "LUSTRE":
                lustre.append(self._lustre(resource))
            elif kind == "OPENZFS":
                openzfs.append(self._openzfs(resource))
            elif kind is UNRESOLVED:
                return UNRESOLVED, UNRESOLVED
        return tuple(lustre), tuple(openzfs)

    def _mounted(self, cluster: Resource) -> set[Resource]:
        names = (*self._mounted_names(cluster, LUSTRE), *self._mounted_names(cluster, OPENZFS))
        return {found for name in names if (found := _file_system(name)) is not None}

    def _mounted_names(self, cluster: Resource, kind: str) -> list[Node]:
        groups = self._values.properties(cluster).get("InstanceGroups").items() or ()
        configs = [config for group in groups for config in group.get("InstanceStorageConfigs").items() or ()]
        return [config.get(kind, "DnsName") for config in configs if config.get(kind).present]

    def _mount(self, node: Node, kind: str) -> Mount:
        resource = _file_system(node.get("DnsName"))
        mount_name = node.get("MountName")
        return read_item(
            Mount,
            node,
            kind=kind,
            dns_name=None if resource else node.get("DnsName").text(),
            mount_name=None if mount_name.resource(FILE_SYSTEM) else mount_name.text(),
            file_system=None if resource is None else self._values.graph.identity(resource),
        )

    def _lustre(self, resource: Resource) -> LustreFileSystem:
        properties = self._values.properties(resource)
        return read_item(
            LustreFileSystem,
            properties,
            id=self._values.graph.identity(resource),
            vpc=self._network.vpc_config(
                properties, subnets=properties.get("SubnetIds"), security_groups=properties.get("SecurityGroupIds")
            ),
            kept=resource.body.get("DeletionPolicy") in _KEPT,
            data_repository_associations=self._associations(resource),
        )

    def _associations(self, file_system: Resource) -> Any:
        found = self._values.linked([ASSOCIATION], ["FileSystemId"], file_system)
        if not found.complete:
            return UNRESOLVED
        return tuple(self._association(each, found.found) for each in found.found)

    def _association(self, resource: Resource, others: tuple[Resource, ...]) -> DataRepositoryAssociation:
        properties = self._values.properties(resource)
        return read_item(
            DataRepositoryAssociation,
            properties,
            name=self._values.graph.identity(resource),
            data_repository_path=required(_uri(properties.get("DataRepositoryPath"))),
            waits_for_others=all(self._order.one_by_one(resource, other) for other in others if other is not resource),
        )

    def _openzfs(self, resource: Resource) -> OpenZfsFileSystem:
        properties = self._values.properties(resource)
        return read_item(
            OpenZfsFileSystem,
            properties,
            id=self._values.graph.identity(resource),
            vpc=self._network.vpc_config(
                properties, subnets=properties.get("SubnetIds"), security_groups=properties.get("SecurityGroupIds")
            ),
        )


def _volume(node: Node) -> Volume:
    key = node.get("VolumeKmsKeyId")
    # Which key it is matters to no rule, but whether there is one.
    return read_item(Volume, node, kms_key=key.token if key.is_attribute else key.text())


def _file_system(dns_name: Node) -> Resource | None:
    """File system with this DNS name, also if joined from id and region."""
    resource = dns_name.resource(FILE_SYSTEM)
    if resource is None and isinstance(dns_name.value, Text):
        first = dns_name.value.parts[0]
        if isinstance(first, Reference) and first.resource.type == FILE_SYSTEM:
            return first.resource
    return resource


def _is_strange(dns_name: Node) -> bool:
    return dns_name.present and _file_system(dns_name) is None


def _unknown_lustre(path: str) -> LustreFileSystem:
    unknown = {each.name: UNRESOLVED for each in fields(LustreFileSystem) if each.name not in ("path", "places")}
    return LustreFileSystem(path=path, **unknown)


def _uri(node: Node) -> Any:
    """S3 URI, with the bucket's logical id if its name is unknown, and gaps in one that is known in part."""
    if isinstance(node.value, Text):
        text = node.value.with_gaps()
        bucket, _, key = text.removeprefix("s3://").partition("/")
        in_part = re.search(r"[a-z0-9]{3}", bucket) and "${" not in key
        return node.value.named() or (text if in_part else UNRESOLVED)
    return node.text()
