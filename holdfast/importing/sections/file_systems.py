"""``storage`` section of an environment file."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from holdfast.catalog import bounds, limits, steps
from holdfast.config.models import Home, Lustre
from holdfast.importing.account import file_system_id, mounts
from holdfast.importing.draft import Draft, KeptParts
from holdfast.importing.sections.settings import read_back, without_defaults

CAPACITY_GIB = steps("lustre_capacity_gib")["PERSISTENT_2"]
THROUGHPUT: list[int] = limits("lustre_throughput_mbps_per_tib")["PERSISTENT_2"]
HOME_THROUGHPUT: list[int] = limits("openzfs_throughput_mbps")["SINGLE_AZ_2"]
UNKNOWN_LUSTRE = {"capacity_gib": CAPACITY_GIB.small[0], "throughput_mbps_per_tib": THROUGHPUT[0]}
UNKNOWN_HOME = {"capacity_gib": bounds("openzfs_capacity_gib").least}


def storage(
    *,
    groups: Sequence[Mapping[str, Any]],
    file_systems: Sequence[Mapping[str, Any]],
    associations: Sequence[Mapping[str, Any]],
    region: str,
    keeping: KeptParts,
    preload: Sequence[str] | None,
    imported: Draft,
) -> dict[str, Any]:
    """
    Return the ``storage`` section.

    Args:
        groups: Of the request, with mounts.
        file_systems: Answers of FSx; others get minimum sizes.
        associations: Data repository associations.
        region: Of the file systems.
        keeping: Resources to keep.
        preload: Folders that lifecycle scripts load from S3; None if unknown.
        imported: Receives notes.
    """
    known = {each["FileSystemId"]: each for each in file_systems}
    section: dict[str, Any] = {"on_delete": "Retain"}
    imported.note(
        "storage.on_delete", "AWS does not say what becomes of the data when the stack is deleted; Retain keeps it"
    )
    lustre = _chosen("FsxLustreConfig", "LUSTRE", groups, known, "storage.lustre", imported)
    if lustre is not None:
        fs_id, described = lustre
        kept = keeping.keeps("storage", fs_id)
        section["lustre"] = (
            _kept_lustre(fs_id, described, groups, region, imported) if kept else _lustre(*lustre, groups, imported)
        )
        if not kept and not keeping.owns(fs_id):
            text = f"a new file system like {fs_id} is made; carry the data over through S3"
            imported.note("storage.lustre", text)
        datasets = _datasets(
            [each for each in associations if not kept or _made(each, keeping)], fs_id, keeping, imported
        )
        mount_path = section["lustre"].get("mount_path", "/fsx")
        if preload:
            section["lustre"]["preload"] = [folder.removeprefix(mount_path) or "/" for folder in preload]
        if preload is None and not kept:
            text = "which folders lifecycle scripts fetch from S3 at first is not known"
            imported.note("storage.lustre.preload", text)
        if datasets:
            section["lustre"]["datasets"] = datasets
    home = _chosen("FsxOpenZfsConfig", "OPENZFS", groups, known, "storage.home", imported)
    if home is not None:
        kept = keeping.keeps("storage", home[0])
        section["home"] = _kept_home(home[0], groups, region, imported) if kept else _home(*home, groups, imported)
        if not kept and not keeping.owns(home[0]):
            text = f"a new file system like {home[0]} is made; copy the home directories over"
            imported.note("storage.home", text)
    return section


def _kept_lustre(
    fs_id: str,
    described: Mapping[str, Any] | None,
    groups: Sequence[Mapping[str, Any]],
    region: str,
    imported: Draft,
) -> dict[str, Any]:
    config = _mounted("FsxLustreConfig", groups, fs_id)
    of_fsx = (described or {}).get("LustreConfiguration") or {}
    mount_name = config.get("MountName") or of_fsx.get("MountName", "")
    existing = {"file_system_id": fs_id, "mount_name": mount_name, **_dns_name(fs_id, config, region)}
    imported.note("storage.lustre.existing", "the file system is mounted; its data repository associations stay")
    section: dict[str, Any] = {"existing": existing}
    mount_path = _mount_path("FsxLustreConfig", groups, "storage.lustre", imported)
    if mount_path not in (None, "/fsx"):
        section["mount_path"] = mount_path
    settings = without_defaults(Lustre, read_back(Lustre, described or {}))
    return section | ({"efa": True} if "efa" in settings else {})


def _kept_home(fs_id: str, groups: Sequence[Mapping[str, Any]], region: str, imported: Draft) -> dict[str, Any]:
    config = _mounted("FsxOpenZfsConfig", groups, fs_id)
    imported.note("storage.home.existing", "the file system that is there is mounted")
    section: dict[str, Any] = {"existing": {"file_system_id": fs_id, **_dns_name(fs_id, config, region)}}
    _ask_about_homes(groups, imported)
    mount_path = _mount_path("FsxOpenZfsConfig", groups, "storage.home", imported)
    return section | ({"mount_path": mount_path} if mount_path not in (None, "/home") else {})


def _mounted(kind: str, groups: Sequence[Mapping[str, Any]], fs_id: str) -> Mapping[str, Any]:
    configs = (config[kind] for group in groups for config in _configs(group) if kind in config)
    return next((each for each in configs if file_system_id(each["DnsName"]) == fs_id), {})


def _dns_name(fs_id: str, config: Mapping[str, Any], region: str) -> dict[str, str]:
    """DNS name, unless it is FSx's default for the id."""
    name = config.get("DnsName")
    suffix = "amazonaws.com.cn" if region.startswith("cn-") else "amazonaws.com"
    return {} if name in (None, f"{fs_id}.fsx.{region}.{suffix}") else {"dns_name": name}


def _made(association: Mapping[str, Any], keeping: KeptParts) -> bool:
    return keeping.owns(association.get("AssociationId", ""))


def _chosen(
    kind: str,
    type_name: str,
    groups: Sequence[Mapping[str, Any]],
    known: Mapping[str, Mapping[str, Any]],
    path: str,
    imported: Draft,
) -> tuple[str, Mapping[str, Any] | None] | None:
    configs = [config[kind] for group in groups for config in _configs(group) if kind in config]
    ids = [file_system_id(config["DnsName"]) for config in mounts(groups) if config in configs]
    ids += [each for each, described in known.items() if described["FileSystemType"] == type_name]
    ids = list(dict.fromkeys(ids))
    for other in ids[1:]:
        imported.note(path, f"{other} is left out: an environment has one file system of this kind", decide=True)
    return (ids[0], known.get(ids[0])) if ids else None


def _lustre(
    fs_id: str, described: Mapping[str, Any] | None, groups: Sequence[Mapping[str, Any]], imported: Draft
) -> dict[str, Any]:
    path = "storage.lustre"
    section: dict[str, Any] = {}
    if described is None:
        imported.note(path, f"size and throughput of {fs_id} are not known; say them", decide=True)
        section |= UNKNOWN_LUSTRE
    else:
        section |= _lustre_of(described, imported)
    mount_path = _mount_path("FsxLustreConfig", groups, path, imported)
    return section | ({"mount_path": mount_path} if mount_path not in (None, "/fsx") else {})


def _lustre_of(described: Mapping[str, Any], imported: Draft) -> dict[str, Any]:
    path, config = "storage.lustre", described["LustreConfiguration"]
    kind = f"{config['DeploymentType']} on {described.get('StorageType', 'SSD')}"
    if kind != "PERSISTENT_2 on SSD":
        imported.note(path, f"was {kind}; Holdfast makes PERSISTENT_2 on SSD, check size and throughput", decide=True)
    settings = read_back(Lustre, described)
    capacity = settings["capacity_gib"]
    section: dict[str, Any] = without_defaults(Lustre, settings) | {
        "capacity_gib": capacity if capacity <= CAPACITY_GIB.small[-1] else CAPACITY_GIB.step_above(capacity),
        "throughput_mbps_per_tib": _at_least(settings.get("throughput_mbps_per_tib", 0), THROUGHPUT),
    }
    if section["capacity_gib"] != capacity:
        imported.note(f"{path}.capacity_gib", f"was {capacity}, which PERSISTENT_2 does not have")
    if (config.get("MetadataConfiguration") or {}).get("Mode") != "USER_PROVISIONED":
        section.pop("metadata_iops", None)  # FSx tells the rate that it chose, too
    if (config.get("RootSquashConfiguration") or {}).get("RootSquash", "0:0") != "0:0":
        imported.note(path, "its root squash is left out, the file has no setting for it")
    if config.get("AutomaticBackupRetentionDays"):
        imported.note(path, "its automatic backups are left out, the file has no setting for them")
    return section


def _datasets(
    associations: Sequence[Mapping[str, Any]], fs_id: str, keeping: KeptParts, imported: Draft
) -> list[dict[str, Any]]:
    datasets: list[dict[str, Any]] = []
    for association in associations:
        if association["FileSystemId"] != fs_id:
            continue
        folder = association["FileSystemPath"].rstrip("/") or "/"
        bucket, _, prefix = association["DataRepositoryPath"].removeprefix("s3://").partition("/")
        name = _dataset_name(folder, {dataset["name"] for dataset in datasets})
        events = association.get("S3") or {}
        dataset: dict[str, Any] = {"name": name, "file_system_path": folder}
        if keeping.owns(bucket):
            dataset["s3_prefix"] = prefix.strip("/") or name
            if not prefix.strip("/"):
                imported.note(f"storage.lustre.datasets.{name}.s3_prefix", f"was the whole of bucket {bucket}")
        else:
            dataset["s3_uri"] = association["DataRepositoryPath"].rstrip("/")
        for key, policy in (("auto_import", "AutoImportPolicy"), ("auto_export", "AutoExportPolicy")):
            if (events.get(policy) or {}).get("Events"):
                dataset[key] = list(events[policy]["Events"])
        datasets.append(dataset)
    return datasets


def _home(
    fs_id: str, described: Mapping[str, Any] | None, groups: Sequence[Mapping[str, Any]], imported: Draft
) -> dict[str, Any]:
    path = "storage.home"
    section: dict[str, Any] = dict(UNKNOWN_HOME)
    if described is None:
        imported.note(path, f"size and throughput of {fs_id} are not known; say them", decide=True)
    else:
        section = read_back(Home, described)
        throughput = section["throughput_mbps"]
        section["throughput_mbps"] = _at_least(throughput, HOME_THROUGHPUT)
        if section["throughput_mbps"] != throughput:
            imported.note(
                f"{path}.throughput_mbps", f"was {throughput}, which Holdfast's deployment type does not have"
            )
    _ask_about_homes(groups, imported)
    mount_path = _mount_path("FsxOpenZfsConfig", groups, path, imported)
    return section | ({"mount_path": mount_path} if mount_path not in (None, "/home") else {})


def _ask_about_homes(groups: Sequence[Mapping[str, Any]], imported: Draft) -> None:
    without = [
        group["InstanceGroupName"]
        for group in groups
        if not any("FsxOpenZfsConfig" in config for config in _configs(group))
    ]
    if without and len(without) < len(groups):
        text = f"was not mounted on {', '.join(without)}; here all nodes mount it"
        imported.note("storage.home", text, decide=True)


def _configs(group: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    return group.get("InstanceStorageConfigs") or []


def _mount_path(kind: str, groups: Sequence[Mapping[str, Any]], path: str, imported: Draft) -> str | None:
    configs = [config[kind] for group in groups for config in _configs(group) if kind in config]
    paths = list(dict.fromkeys(config["MountPath"] for config in configs if config.get("MountPath")))
    for other in paths[1:]:
        text = f"some groups had it at {other}; here it is at one place"
        imported.note(f"{path}.mount_path", text, decide=True)
    return paths[0] if paths else None


def _dataset_name(folder: str, taken: set[str]) -> str:
    stem = re.sub(r"[^a-zA-Z0-9]+", "-", folder.strip("/")).strip("-")[-50:].strip("-") or "data"
    last = re.sub(r"[^a-zA-Z0-9]+", "-", folder.rpartition("/")[2]).strip("-") or stem
    if last not in taken:
        return last
    return stem if stem not in taken else f"{stem}-{len(taken)}"


def _at_least(least: int, choices: Sequence[int]) -> int:
    return next((choice for choice in choices if choice >= least), choices[-1])
