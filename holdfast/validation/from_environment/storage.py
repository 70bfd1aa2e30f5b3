"""File systems of an environment file, and what mounts them."""

from typing import Any

from holdfast.catalog import FILE_SYSTEM
from holdfast.validation import translation
from holdfast.validation.cloudformation import UNRESOLVED
from holdfast.validation.from_environment.settings import Settings
from holdfast.validation.model import DataRepositoryAssociation, LustreFileSystem, OpenZfsFileSystem, VpcConfig
from holdfast.validation.translation import Properties, mount

LUSTRE, HOME = "lustre", "home"
THERE = ""
"""The deployment type of a file system that is there: FSx has taken it, and limits are not asked again."""


EXISTING: dict[str, Any] = {
    **dict.fromkeys(("capacity_gib", "throughput_mbps_per_tib", "vpc")),
    "id": LUSTRE,
    "deployment_type": THERE,
    "version": "2.15",
    "kept": True,
}


def mounts_of(file: Settings, group: Settings) -> list[Properties]:
    """Under EKS pods mount file systems, nodes do not."""
    if file.eks is not None:
        return []
    lustre, home = file.storage.lustre, file.storage.home
    mounts = []
    if lustre is not None and group.mount_lustre is True:
        mounts.append(_mount("lustre", LUSTRE, lustre))
    if home is not None:
        mounts.append(_mount("openzfs", HOME, home))
    return mounts


def _mount(kind: str, identity: str, settings: Settings) -> Properties:
    return mount(
        kind,
        path=settings.path,
        places=settings.places(mount_path="mount_path"),
        dns_name={"Fn::GetAtt": [identity, "DNSName"]},
        mount_name={"Fn::GetAtt": [identity, "LustreMountName"]} if kind == "lustre" else None,
        mount_path=settings.mount_path,
    )


def file_systems_of(file: Settings) -> dict[str, Any]:
    """Resources of new file systems, and stand-ins for existing ones, which mounts refer to."""
    lustre, home = file.storage.lustre, file.storage.home
    properties: dict[str, Properties] = {}
    if lustre is not None and lustre.existing is None:
        properties[LUSTRE] = translation.lustre(
            lustre,
            efa=lustre.efa,
            metadata_iops=lustre.metadata_iops,
            capacity_gib=_of_new(lustre, "capacity_gib"),
            throughput_mbps_per_tib=_of_new(lustre, "throughput_mbps_per_tib"),
        )
    if home is not None and home.existing is None:
        properties[HOME] = translation.open_zfs(home, capacity_gib=_of_new(home, "capacity_gib"))
    return {name: {"Type": FILE_SYSTEM, "Properties": properties.get(name, {})} for name in (LUSTRE, HOME)}


def lustre_of(file: Settings, vpc: VpcConfig, new: LustreFileSystem | None = None) -> LustreFileSystem | None:
    """The file system of a file; ``new``: as read from its properties."""
    lustre: Settings | None = file.storage.lustre
    on_delete = file.storage.on_delete
    if lustre is None:
        return None
    datasets = lustre.datasets
    found = lustre.item(LustreFileSystem, **EXISTING) if new is None else new
    return found.changed(
        places={
            **lustre.places_in(LustreFileSystem),
            **lustre.places(data_repository_associations="datasets"),
            "kept": file.storage.at("on_delete"),
        },
        vpc=vpc,
        kept=True if new is None else on_delete if on_delete is UNRESOLVED else on_delete == "Retain",
        data_repository_associations=datasets
        if datasets is UNRESOLVED
        else tuple(_association(dataset, file.storage.data) for dataset in datasets),
        preload=lustre.preload,
    )


def _association(dataset: Settings, data: Settings | None) -> DataRepositoryAssociation:
    return dataset.item(
        DataRepositoryAssociation,
        places={
            **dataset.places_in(DataRepositoryAssociation),
            **dataset.places(data_repository_path="s3_uri" if dataset.is_set("s3_uri") else "s3_prefix"),
        },
        data_repository_path=_data_repository_path(dataset, data),
        waits_for_others=True,
    )


def _data_repository_path(dataset: Settings, data: Settings | None) -> Any:
    """The whole URI, or the prefix in a data bucket without a name; unknown if neither is given."""
    found = dataset.s3_uri if dataset.is_set("s3_uri") else dataset.s3_prefix
    if found in (None, UNRESOLVED) or dataset.is_set("s3_uri") or data is None or data.bucket_name is UNRESOLVED:
        return UNRESOLVED if found is None else found
    return f"s3://{data.bucket_name}/{found}"


def _of_new(section: Settings, name: str) -> Any:
    """Setting of a new file system; unknown if missing, which another rule reports."""
    return getattr(section, name) if section.is_set(name) else UNRESOLVED


def home_of(file: Settings, vpc: VpcConfig, new: OpenZfsFileSystem | None = None) -> OpenZfsFileSystem | None:
    home: Settings | None = file.storage.home
    if home is None:
        return None
    if new is None:
        there = {"id": HOME, "deployment_type": THERE, "capacity_gib": None, "vpc": vpc}
        return home.item(OpenZfsFileSystem, **there)
    return new.changed(vpc=vpc)
