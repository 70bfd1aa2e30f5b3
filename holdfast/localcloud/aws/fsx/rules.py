"""
Limits of FSx for Lustre beyond its API's shapes: capacity, throughput, metadata, EFA, data repositories. Pure.

Source: FSx API reference (CreateFileSystem, CreateDataRepositoryAssociation), user guide, storage capacity.
"""

from collections.abc import Iterable
from typing import Any

from holdfast.catalog import Steps, bounds, least_metadata_iops, limits, steps
from holdfast.localcloud.aws.common import ServiceError

THROUGHPUTS: dict[str, dict[str, list[int]]] = {
    "SSD": limits("lustre_throughput_mbps_per_tib"),
    "HDD": limits("lustre_hdd_throughput_mbps_per_tib"),
}
MAX_ASSOCIATIONS = bounds("data_repository_associations").most
DEFAULT_VERSIONS = {"SCRATCH_1": "2.10", "SCRATCH_2": "2.10", "PERSISTENT_1": "2.10", "PERSISTENT_2": "2.15"}
VERSIONS: dict[str, list[str]] = limits("lustre_versions")
WITH_METADATA = ["2.15"]
EVENTS = ("NEW", "CHANGED", "DELETED")


def bad_request(message: str) -> ServiceError:
    return ServiceError("BadRequest", message)


def not_available(what: str) -> ServiceError:
    return ServiceError("NotImplementedException", f"not implemented by the embedded AWS: fsx {what}", 501)


def check_file_system(
    *, capacity: int | None, storage_type: str, version: str, subnets: list[str], lustre: dict[str, Any]
) -> None:
    """Raise what CreateFileSystem raises."""
    deployment = lustre["DeploymentType"]
    if len(subnets) != 1:
        raise bad_request(f"Exactly one subnet ID must be specified for a Lustre file system; {len(subnets)} given.")
    if storage_type == "INTELLIGENT_TIERING":
        raise not_available("storage type INTELLIGENT_TIERING")
    if storage_type == "HDD" and deployment != "PERSISTENT_1":
        raise bad_request(f"StorageType HDD is not supported for deployment type {deployment}.")
    _check_version(version, lustre)
    _check_throughput(deployment, storage_type, lustre)
    if lustre.get("EfaEnabled") and (deployment != "PERSISTENT_2" or "MetadataConfiguration" not in lustre):
        raise bad_request("EfaEnabled requires deployment type PERSISTENT_2 with a MetadataConfiguration.")
    if capacity is None:
        raise bad_request("StorageCapacity must be specified for a Lustre file system.")
    check_capacity(capacity=capacity, storage_type=storage_type, lustre=lustre)
    _check_metadata(deployment, lustre, capacity=capacity)
    if deployment == "PERSISTENT_2":
        for key in ("ImportPath", "ExportPath", "AutoImportPolicy", "ImportedFileChunkSize"):
            if key in lustre:
                raise bad_request(
                    f"{key} is not supported for deployment type PERSISTENT_2. Use a data repository association."
                )


def check_capacity(*, capacity: int, storage_type: str, lustre: dict[str, Any]) -> None:
    deployment, throughput = lustre["DeploymentType"], lustre.get("PerUnitStorageThroughput", 0)
    allowed = steps("lustre_capacity_gib")[deployment]
    if storage_type == "HDD":
        allowed = steps("lustre_hdd_capacity_gib")[str(throughput)]
    elif lustre.get("EfaEnabled"):
        step = limits("lustre_efa_capacity_step_gib")[str(throughput)]
        allowed = Steps(small=(step,), multiple=step)
    if not allowed.has(capacity):
        raise bad_request(
            f"The storage capacity {capacity} GiB is not valid. For deployment type {deployment} with "
            f"{storage_type} storage, valid values are {', '.join(map(str, allowed.small))} and multiples of "
            f"{allowed.multiple} GiB."
        )


def check_growth(*, before: int, after: int) -> None:
    """Check that capacity grows by at least 10 %."""
    if after <= before:
        raise bad_request(
            f"The storage capacity can only be increased: the file system has {before} GiB, {after} GiB was requested."
        )
    if after * 10 < before * 11:
        raise bad_request(f"The storage capacity must be increased by at least 10 percent; {before} to {after} GiB.")


def check_metadata_growth(*, before: dict[str, Any], after: dict[str, Any], capacity_grows: bool) -> None:
    """Check that metadata IOPS only rise, in their own request: words assumed, terraform-provider-aws 44432 has two."""
    old, new = before.get("Iops"), after.get("Iops")
    if old is None or new is None or new == old:
        return
    if new < old:
        raise bad_request(f"Metadata Iops can only be increased: the file system has {old}, {new} was requested.")
    if capacity_grows:
        raise bad_request("StorageCapacity and metadata Iops cannot be increased in one request.")


def check_association(
    *, path: str, repository: str, lustre: dict[str, Any], version: str, existing: Iterable[dict[str, Any]]
) -> None:
    """Raise what CreateDataRepositoryAssociation raises."""
    others = list(existing)
    if lustre["DeploymentType"] == "SCRATCH_1":
        raise bad_request("Data repository associations are not supported for deployment type SCRATCH_1.")
    if version == "2.10":
        raise bad_request("Data repository associations require a file system of Lustre version 2.12 or later.")
    if len(others) >= MAX_ASSOCIATIONS:
        raise ServiceError(
            "ServiceLimitExceeded", f"A file system can have at most {MAX_ASSOCIATIONS} data repository associations."
        )
    if not path.startswith("/"):
        raise bad_request(f"FileSystemPath '{path}' must begin with a forward slash (/).")
    if any(part in ("", ".", "..") for part in path.strip("/").split("/")) and path.strip("/"):
        # Assumed: the pattern of the API's Namespace takes any characters, and says nothing of parts.
        raise bad_request(f"FileSystemPath '{path}' is not valid: it must not contain '//', '.' or '..'.")
    if not repository.startswith("s3://") or len(repository) == len("s3://"):
        raise bad_request(f"DataRepositoryPath '{repository}' must have the form s3://bucket-name/prefix/.")
    for other in others:
        if _overlap(path, other["FileSystemPath"]):
            raise bad_request(f"FileSystemPath '{path}' overlaps '{other['FileSystemPath']}' of {_id(other)}.")
        if _overlap(repository[4:], other["DataRepositoryPath"][4:]):
            raise bad_request(
                f"DataRepositoryPath '{repository}' overlaps '{other['DataRepositoryPath']}' of {_id(other)}."
            )


def check_events(s3: dict[str, Any]) -> None:
    for policy in s3.values():
        events = policy.get("Events", [])
        if len(set(events)) != len(events):
            raise bad_request(f"Events {events} contain duplicates; allowed: each of {', '.join(EVENTS)} once.")


def _check_version(version: str, lustre: dict[str, Any]) -> None:
    deployment = lustre["DeploymentType"]
    allowed = WITH_METADATA if "MetadataConfiguration" in lustre else VERSIONS[deployment]
    if version not in allowed:
        raise bad_request(
            f"FileSystemTypeVersion {version} is not valid for deployment type {deployment}"
            f"{' with a MetadataConfiguration' if 'MetadataConfiguration' in lustre else ''}. "
            f"Valid values are {', '.join(allowed)}."
        )


def _check_throughput(deployment: str, storage_type: str, lustre: dict[str, Any]) -> None:
    given = lustre.get("PerUnitStorageThroughput")
    tiers = THROUGHPUTS.get(storage_type, {}).get(deployment)
    if tiers is None:
        if given is not None:
            raise bad_request(f"PerUnitStorageThroughput is not supported for deployment type {deployment}.")
    elif given not in tiers:
        code = "InvalidPerUnitStorageThroughput" if given is not None else "BadRequest"
        allowed = ", ".join(str(tier) for tier in tiers)
        raise ServiceError(
            code,
            f"PerUnitStorageThroughput {given} is not valid. For deployment type {deployment} with {storage_type} "
            f"storage, valid values are {allowed} MB/s/TiB.",
        )


def _check_metadata(deployment: str, lustre: dict[str, Any], *, capacity: int) -> None:
    metadata = lustre.get("MetadataConfiguration")
    if metadata is None:
        return
    if deployment != "PERSISTENT_2":
        raise bad_request(f"MetadataConfiguration is not supported for deployment type {deployment}.")
    iops = metadata.get("Iops")
    if metadata["Mode"] == "AUTOMATIC":
        if iops is not None:
            raise bad_request("Iops must not be specified when the metadata configuration mode is AUTOMATIC.")
        return
    allowed = steps("lustre_metadata_iops")[deployment]
    if iops is None or not allowed.has(iops):
        raise bad_request(f"Metadata Iops {iops} is not valid. Valid values are {allowed}.")
    if iops < (least := least_metadata_iops(capacity)):
        raise bad_request(
            f"Metadata Iops {iops} is less than the {least} that a storage capacity of {capacity} GiB requires."
        )


def _overlap(one: str, other: str) -> bool:
    first, second = one.rstrip("/") + "/", other.rstrip("/") + "/"
    return first.startswith(second) or second.startswith(first)


def _id(association: dict[str, Any]) -> str:
    return str(association["AssociationId"])
