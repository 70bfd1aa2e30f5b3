"""File systems of an environment file, and what mounts them."""

from typing import Any

from holdfast.validation.cloudformation import UNRESOLVED
from holdfast.validation.from_environment.settings import Settings
from holdfast.validation.model import DataRepositoryAssociation, LustreFileSystem, OpenZfsFileSystem, VpcConfig
from holdfast.validation.translation import Properties, mount

LUSTRE, HOME = "lustre", "home"
THERE = ""
"""The deployment type of a file system that is there: FSx has taken it, and limits are not asked again."""


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


def lustre_of(file: Settings, vpc: VpcConfig) -> LustreFileSystem | None:
    lustre: Settings | None = file.storage.lustre
    on_delete = file.storage.on_delete
    if lustre is None:
        return None
    datasets, there = lustre.datasets, lustre.existing is not None
    return lustre.item(
        LustreFileSystem,
        places={
            **lustre.places_in(LustreFileSystem),
            **lustre.places(data_repository_associations="datasets"),
            "kept": file.storage.at("on_delete"),
        },
        id=LUSTRE,
        deployment_type=THERE if there else "PERSISTENT_2",
        version="2.15",
        metadata_mode=None if there else "USER_PROVISIONED" if lustre.is_set("metadata_iops") else "AUTOMATIC",
        vpc=vpc,
        kept=True if there else on_delete if on_delete is UNRESOLVED else on_delete == "Retain",
        data_repository_associations=datasets
        if datasets is UNRESOLVED
        else tuple(_association(dataset, file.storage.data) for dataset in datasets),
        capacity_gib=_of_new(lustre, "capacity_gib"),
        throughput_mbps_per_tib=_of_new(lustre, "throughput_mbps_per_tib"),
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
    """Setting of a new file system; unknown if missing, which another rule reports. None for an existing one."""
    if section.existing is not None:
        return None
    return getattr(section, name) if section.is_set(name) else UNRESOLVED


def home_of(file: Settings, vpc: VpcConfig) -> OpenZfsFileSystem | None:
    home: Settings | None = file.storage.home
    if home is None:
        return None
    return home.item(
        OpenZfsFileSystem,
        id=HOME,
        deployment_type=THERE if home.existing is not None else "SINGLE_AZ_2",
        vpc=vpc,
        capacity_gib=_of_new(home, "capacity_gib"),
    )
