"""Existing resources named in an environment file."""

from collections.abc import Iterator
from typing import Any

from holdfast.validation.cloudformation import UNRESOLVED
from holdfast.validation.from_environment.eks import addons_on_nodes
from holdfast.validation.from_environment.settings import Settings
from holdfast.validation.model import BucketName, Choice, Existing, FileSystemId, Reference, Scripts

ROLES = "SageMaker is passed roles of its own account"
BOUNDARIES = "a boundary is a policy of the role's account, or of AWS"
FILE_SYSTEMS = "nodes mount it in their network"


def existing(file: Settings) -> Existing:
    network = file.network.existing
    return Existing(
        path="",
        places={"has_vpc": file.network.at("existing"), "buckets": "storage.data.bucket_name"},
        choices=tuple(_choices(file)),
        references=tuple(_known(_references(file))),
        scripts=tuple(_scripts(file)),
        needs_vpc=tuple(_needs_vpc(file)),
        has_vpc=network is None or network.is_set("vpc_id"),
        roles=tuple(dict.fromkeys(role for role, _ in _roles(file))),
        eks_cluster=_eks_cluster(file),
        file_systems=tuple(_file_systems(file.storage)),
        buckets=tuple(_buckets(file)),
        addons=() if file.eks is None or file.eks.existing is None else tuple(addons_on_nodes(file)),
    )


def _choices(file: Settings) -> Iterator[Choice]:
    storage, network, eks = file.storage, file.network, file.eks
    if storage.lustre is not None:
        new = storage.lustre.becoming(beside=("capacity_gib", "efa"))  # which alarms and nodes want to know of any
        yield _choice(storage.lustre, "a file system", new, ("capacity_gib", "throughput_mbps_per_tib"))
        datasets = storage.lustre.datasets
        for dataset in datasets if datasets is not UNRESOLVED else ():
            yield _choice(dataset, "a dataset", ("s3_prefix",), ("s3_prefix",), other="s3_uri")
    if storage.home is not None:
        yield _choice(storage.home, "a file system", storage.home.becoming(), ("capacity_gib",))
    if eks is not None:
        yield _choice(eks, "a control plane", ("public_access_cidrs",), ("kubernetes_version",))
    zone = "availability_zone"
    required = () if network.existing is not None else (zone,)
    yield _choice(network, "a zone", (zone,), required, other=f"{zone}_id")
    yield _choice(network, "a zone", (f"control_plane_{zone}",), (), other=f"control_plane_{zone}_id")
    yield _choice(file.lifecycle, "scripts", ("users", "scripts", "bucket"), ())


def _choice(
    section: Settings, what: str, new: tuple[str, ...], required: tuple[str, ...], *, other: str = "existing"
) -> Choice:
    unreadable = section.is_unreadable
    return Choice(
        path=section.path,
        places=section.places(**{name: name for name in new}),
        what=what,
        other=other,
        there=UNRESOLVED if unreadable else section.is_set(other),
        made=tuple(name for name in new if section.is_set(name)),
        lacking=tuple(name for name in required if not section.is_set(name)),
    )


def _configs(file: Settings) -> Iterator[Settings]:
    if file.lifecycle.existing is not None:
        yield file.lifecycle.existing
    yield from (group.life_cycle_config for group in _groups(file) if group.life_cycle_config is not None)


def _groups(file: Settings) -> tuple[Settings, ...]:
    groups = file.cluster.instance_groups
    return () if groups is UNRESOLVED else groups


def _references(file: Settings) -> Iterator[Reference]:
    for role, path in _roles(file):
        yield _arn(path, "the execution role", role, ROLES)
    cluster, storage = file.cluster, file.storage
    if cluster.is_set("cluster_role_arn"):
        yield _arn(cluster.at("cluster_role_arn"), "the role", cluster.cluster_role_arn, ROLES)
    there = None if file.eks is None else file.eks.existing
    if there is not None and isinstance(there.cluster, str) and there.cluster.startswith("arn:"):
        why = "a HyperPod cluster joins one of its own account and region"
        yield _arn(there.at("cluster"), "the EKS cluster", there.cluster, why)
    boundary = file.permissions_boundary
    if isinstance(boundary, str) and boundary.startswith("arn:") and boundary.split(":")[4] != "aws":
        yield _arn(file.at("permissions_boundary"), "the permissions boundary", boundary, BOUNDARIES)
    for section in (storage.lustre, storage.home):
        found = None if section is None else section.existing
        if found is not None and found.is_set("dns_name"):
            yield _dns(found)


def _arn(path: str, what: str, arn: Any, why: str) -> Reference:
    if not isinstance(arn, str):
        return Reference(path=path, what=what, name=UNRESOLVED, region=UNRESOLVED, account=UNRESOLVED, why=why)
    # The region of what an ARN names is judged for all ARNs alike.
    return Reference(path=path, what=what, name=arn, region=None, account=arn.split(":")[4], why=why)


def _dns(found: Settings) -> Reference:
    name = found.dns_name
    labels = name.split(".") if isinstance(name, str) else []
    region = labels[2] if len(labels) > 3 and labels[1] == "fsx" else None
    return Reference(
        path=found.at("dns_name"),
        what="the file system",
        name=name,
        region=region,
        account=None,
        why=FILE_SYSTEMS,
        beginning=found.file_system_id if isinstance(found.file_system_id, str) else "",
    )


def _known(references: Iterator[Reference]) -> Iterator[Reference]:
    yield from (reference for reference in references if reference.is_known("name"))


def _roles(file: Settings) -> Iterator[tuple[str, str]]:
    cluster, restricted = file.cluster, file.cluster.restricted_instance_groups
    for section in (cluster, *_groups(file), *(() if restricted is UNRESOLVED else restricted)):
        if section.is_set("execution_role_arn") and isinstance(section.execution_role_arn, str):
            yield section.execution_role_arn, section.at("execution_role_arn")


def _scripts(file: Settings) -> Iterator[Scripts]:
    shared, bucket = file.lifecycle.existing, file.lifecycle.bucket
    for group in _groups(file):
        config = group.life_cycle_config or shared
        own = group.execution_role_arn if group.is_set("execution_role_arn") else file.cluster.execution_role_arn
        role = own if isinstance(own, str) else None
        set_mode = group.lifecycle_mode if group.is_set("lifecycle_mode") else None
        if set_mode is None and config is shared and file.lifecycle.is_set("mode"):
            set_mode = file.lifecycle.mode
        if config is not None and isinstance(config.source_s3_uri, str):
            place = group.at("lifecycle_mode") if group.is_set("lifecycle_mode") else config.path
            yield Scripts(
                path=config.at("source_s3_uri"),
                places={"required_mode": place},
                bucket=config.source_s3_uri.removeprefix("s3://").partition("/")[0],
                role=role,
                mode="custom" if config.is_set("on_create") else "extension",
                required_mode=set_mode if isinstance(set_mode, str) else None,
            )
        elif config is None and bucket is not None and isinstance(bucket.bucket_name, str):
            yield Scripts(path=bucket.at("bucket_name"), bucket=bucket.bucket_name, role=role, mode=None)


def _needs_vpc(file: Settings) -> Iterator[str]:
    if file.network.existing is None:
        return
    accounting = None if file.slurm is None else file.slurm.accounting
    if accounting is not None and accounting.create is True:
        yield "slurm.accounting.create"
    if file.network.existing.is_set("route_table_id"):
        yield "network.existing.route_table_id"
    eks = file.eks
    if eks is None:
        return
    if eks.existing is None:
        yield "eks"
    elif eks.existing.install_charts is True:
        yield "eks.existing.install_charts"
    elif file.storage.lustre is not None:
        yield "storage.lustre, which is installed as a volume"


def _eks_cluster(file: Settings) -> Any:
    there = None if file.eks is None else file.eks.existing
    if there is None:
        return None
    return there.cluster.rpartition("/")[2] if isinstance(there.cluster, str) else UNRESOLVED


def _file_systems(storage: Settings) -> Iterator[FileSystemId]:
    for section in (storage.lustre, storage.home):
        there = None if section is None else section.existing
        if there is not None and isinstance(there.file_system_id, str):
            yield FileSystemId(path=there.at("file_system_id"), id=there.file_system_id)


def _buckets(file: Settings) -> Iterator[BucketName]:
    for place in (file.storage.data, file.lifecycle.bucket):
        if place is not None and isinstance(place.bucket_name, str):
            yield BucketName(path=place.at("bucket_name"), name=place.bucket_name)
    datasets = () if file.storage.lustre is None else file.storage.lustre.datasets
    uris = [(each, "s3_uri") for each in datasets] if datasets is not UNRESOLVED else []
    for section, name in (*uris, *((config, "source_s3_uri") for config in _configs(file))):
        uri = getattr(section, name)
        if isinstance(uri, str):
            yield BucketName(path=section.at(name), name=uri.removeprefix("s3://").partition("/")[0])
