"""From FSx file systems and their links to the ``storage`` section of an environment file."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from holdfast.importing._imported import Imported
from holdfast.importing._observed import file_system_id, mounts

THROUGHPUT = (125, 250, 500, 1000)
HOME_THROUGHPUT = (160, 320, 640, 1280, 2560, 3840, 5120, 7680, 10240)
LARGEST_SMALL_GIB = 1200
CAPACITY_STEP_GIB = 2400
UNKNOWN_LUSTRE = {"capacity_gib": LARGEST_SMALL_GIB, "throughput_mbps_per_tib": 125}
UNKNOWN_HOME = {"capacity_gib": 64}


def storage(
    *,
    groups: Sequence[Mapping[str, Any]],
    file_systems: Sequence[Mapping[str, Any]],
    associations: Sequence[Mapping[str, Any]],
    stack: frozenset[str],
    preload: Sequence[str] | None,
    imported: Imported,
) -> dict[str, Any]:
    """
    The ``storage`` section.

    Args:
        groups: Of the request; they say what is mounted where.
        file_systems: What FSx told of those that it was asked about; the others get the least that there is.
        associations: Their links to S3.
        stack: Physical ids of the stack that Holdfast made the cluster with, whose data bucket is no surprise.
        preload: Folders on the nodes that lifecycle scripts fetch from S3 at first; None when nobody knows.
        imported: Takes notes.
    """
    known = {each["FileSystemId"]: each for each in file_systems}
    section: dict[str, Any] = {"on_delete": "Retain"}
    imported.note(
        "storage.on_delete", "AWS does not say what becomes of the data when the stack is deleted; Retain keeps it"
    )
    lustre = _chosen("FsxLustreConfig", "LUSTRE", groups, known, "storage.lustre", imported)
    if lustre is not None:
        section["lustre"] = _lustre(*lustre, groups, imported)
        _note_data(lustre[0], stack, "storage.lustre", "carry the data over through S3", imported)
        datasets = _datasets(associations, lustre[0], stack, imported)
        mount_path = section["lustre"].get("mount_path", "/fsx")
        if preload:
            section["lustre"]["preload"] = [folder.removeprefix(mount_path) or "/" for folder in preload]
        if preload is None:
            text = "which folders lifecycle scripts fetch from S3 at first is not known"
            imported.note("storage.lustre.preload", text)
        if datasets:
            section["lustre"]["datasets"] = datasets
    home = _chosen("FsxOpenZfsConfig", "OPENZFS", groups, known, "storage.home", imported)
    if home is not None:
        section["home"] = _home(*home, groups, imported)
        _note_data(home[0], stack, "storage.home", "copy the home directories over", imported)
    return section


def _note_data(fs_id: str, stack: frozenset[str], path: str, advice: str, imported: Imported) -> None:
    if fs_id not in stack:
        imported.note(path, f"a new file system like {fs_id} is made; {advice}")


def _chosen(
    kind: str,
    type_name: str,
    groups: Sequence[Mapping[str, Any]],
    known: Mapping[str, Mapping[str, Any]],
    path: str,
    imported: Imported,
) -> tuple[str, Mapping[str, Any] | None] | None:
    """The one file system of a kind that the file can have: its id, and what is known of it."""
    configs = [
        config[kind] for group in groups for config in group.get("InstanceStorageConfigs") or [] if kind in config
    ]
    ids = [file_system_id(config["DnsName"]) for config in mounts(groups) if config in configs]
    ids += [each for each, described in known.items() if described["FileSystemType"] == type_name]
    ids = list(dict.fromkeys(ids))
    for other in ids[1:]:
        imported.note(path, f"{other} is left out: an environment has one file system of this kind")
    return (ids[0], known.get(ids[0])) if ids else None


def _lustre(
    fs_id: str, described: Mapping[str, Any] | None, groups: Sequence[Mapping[str, Any]], imported: Imported
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


def _lustre_of(described: Mapping[str, Any], imported: Imported) -> dict[str, Any]:
    path, config = "storage.lustre", described["LustreConfiguration"]
    kind = f"{config['DeploymentType']} on {described.get('StorageType', 'SSD')}"
    if kind != "PERSISTENT_2 on SSD":
        imported.note(path, f"was {kind}; Holdfast makes PERSISTENT_2 on SSD, check size and throughput", decide=True)
    capacity = described["StorageCapacity"]
    section: dict[str, Any] = {
        "capacity_gib": capacity if capacity <= LARGEST_SMALL_GIB else _next_step(capacity),
        "throughput_mbps_per_tib": _at_least(config.get("PerUnitStorageThroughput", 0), THROUGHPUT),
    }
    if section["capacity_gib"] != capacity:
        imported.note(f"{path}.capacity_gib", f"was {capacity}, which PERSISTENT_2 does not have")
    if config.get("EfaEnabled"):
        section["efa"] = True
    metadata = config.get("MetadataConfiguration") or {}
    if metadata.get("Mode") == "USER_PROVISIONED":
        section["metadata_iops"] = metadata["Iops"]
    if config.get("DataCompressionType", "NONE") != "LZ4":
        section["compression"] = "NONE"
    if (config.get("RootSquashConfiguration") or {}).get("RootSquash", "0:0") != "0:0":
        imported.note(path, "its root squash is left out, the file has no setting for it")
    if config.get("AutomaticBackupRetentionDays"):
        imported.note(path, "its automatic backups are left out, the file has no setting for them")
    return section


def _datasets(
    associations: Sequence[Mapping[str, Any]], fs_id: str, stack: frozenset[str], imported: Imported
) -> list[dict[str, Any]]:
    datasets: list[dict[str, Any]] = []
    for association in associations:
        if association["FileSystemId"] != fs_id:
            continue
        folder = association["FileSystemPath"].rstrip("/") or "/"
        bucket, _, prefix = association["DataRepositoryPath"].removeprefix("s3://").partition("/")
        name = _dataset_name(folder, {dataset["name"] for dataset in datasets})
        path = f"storage.lustre.datasets.{name}"
        events = association.get("S3") or {}
        dataset: dict[str, Any] = {"name": name, "file_system_path": folder, "s3_prefix": prefix.strip("/") or name}
        if not prefix.strip("/"):
            imported.note(f"{path}.s3_prefix", f"was the whole of bucket {bucket}")
        for key, policy in (("auto_import", "AutoImportPolicy"), ("auto_export", "AutoExportPolicy")):
            if (events.get(policy) or {}).get("Events"):
                dataset[key] = list(events[policy]["Events"])
        if bucket not in stack:
            imported.note(path, f"was linked with s3://{bucket}/{prefix}: copy it to the data bucket of the new stack")
        datasets.append(dataset)
    return datasets


def _home(
    fs_id: str, described: Mapping[str, Any] | None, groups: Sequence[Mapping[str, Any]], imported: Imported
) -> dict[str, Any]:
    path = "storage.home"
    section: dict[str, Any] = dict(UNKNOWN_HOME)
    if described is None:
        imported.note(path, f"size and throughput of {fs_id} are not known; say them", decide=True)
    else:
        throughput = described["OpenZFSConfiguration"]["ThroughputCapacity"]
        section = {
            "capacity_gib": described["StorageCapacity"],
            "throughput_mbps": _at_least(throughput, HOME_THROUGHPUT),
        }
        if section["throughput_mbps"] != throughput:
            imported.note(
                f"{path}.throughput_mbps", f"was {throughput}, which Holdfast's deployment type does not have"
            )
    without = [group["InstanceGroupName"] for group in groups if not _mounts_home(group)]
    if without and len(without) < len(groups):
        imported.note(path, f"was not mounted on {', '.join(without)}; here all nodes mount it")
    mount_path = _mount_path("FsxOpenZfsConfig", groups, path, imported)
    return section | ({"mount_path": mount_path} if mount_path not in (None, "/home") else {})


def _mounts_home(group: Mapping[str, Any]) -> bool:
    return any("FsxOpenZfsConfig" in config for config in group.get("InstanceStorageConfigs") or [])


def _mount_path(kind: str, groups: Sequence[Mapping[str, Any]], path: str, imported: Imported) -> str | None:
    configs = [
        config[kind] for group in groups for config in group.get("InstanceStorageConfigs") or [] if kind in config
    ]
    paths = list(dict.fromkeys(config["MountPath"] for config in configs if config.get("MountPath")))
    for other in paths[1:]:
        imported.note(f"{path}.mount_path", f"some groups had it at {other}; here it is at one place")
    return paths[0] if paths else None


def _dataset_name(folder: str, taken: set[str]) -> str:
    stem = re.sub(r"[^a-zA-Z0-9]+", "-", folder.strip("/")).strip("-")[-50:].strip("-") or "data"
    last = re.sub(r"[^a-zA-Z0-9]+", "-", folder.rpartition("/")[2]).strip("-") or stem
    if last not in taken:
        return last
    return stem if stem not in taken else f"{stem}-{len(taken)}"


def _next_step(capacity: int) -> int:
    return -(-capacity // CAPACITY_STEP_GIB) * CAPACITY_STEP_GIB


def _at_least(wanted: int, choices: Sequence[int]) -> int:
    return next((choice for choice in choices if choice >= wanted), choices[-1])
