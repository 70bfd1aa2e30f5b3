"""Amazon FSx: Lustre and OpenZFS file systems. Their data repository associations are in `_fsx_associations`.

Only records live here; the files themselves, and their exchange with S3, are the HyperPod control plane's business.
Creation and deletion take a moment, as callers must be ready for: a record changes its Lifecycle by the clock when
it is looked at, so nothing runs in the background.
"""
# ruff: noqa: N803 - arguments bear the names of the API members

import copy
import secrets
import string
import threading
from collections.abc import Callable
from typing import Any

from botocore.exceptions import ClientError

from holdfast.localcloud.aws.clients import ClientFactory
from holdfast.localcloud.aws.common import ServiceError, now, page, tag_dict, tag_list
from holdfast.localcloud.aws.fsx import openzfs, rules
from holdfast.localcloud.aws.fsx.associations import Associations, elapsed
from holdfast.localcloud.aws.fsx.network import check_lnet

LUSTRE_DEFAULTS = {
    "WeeklyMaintenanceStartTime": "7:05:00",
    "DataCompressionType": "NONE",
    "CopyTagsToBackups": False,
    "AutomaticBackupRetentionDays": 0,
}


class Fsx(Associations):
    """FSx in one account and region."""

    def __init__(self, *, client: ClientFactory, account: str, region: str) -> None:
        self.on_change: Callable[[], None] = lambda: None
        self._client = client
        self._account = account
        self._region = region
        self._lock = threading.RLock()
        self._file_systems: dict[str, dict[str, Any]] = {}
        self._associations: dict[str, dict[str, Any]] = {}
        self._tokens: dict[str, str] = {}

    def create_file_system(
        self,
        *,
        FileSystemType: str,
        SubnetIds: list[str],
        StorageCapacity: int | None = None,
        StorageType: str = "SSD",
        SecurityGroupIds: list[str] | None = None,
        LustreConfiguration: dict[str, Any] | None = None,
        OpenZFSConfiguration: dict[str, Any] | None = None,
        FileSystemTypeVersion: str = "",
        Tags: list[dict[str, str]] | None = None,
        ClientRequestToken: str = "",
        KmsKeyId: str = "",
        NetworkType: str = "IPV4",
    ) -> dict[str, Any]:
        if FileSystemType not in ("LUSTRE", "OPENZFS"):
            raise rules.not_available(f"file systems of type {FileSystemType}; use LUSTRE or OPENZFS")
        with self._lock:
            if ClientRequestToken in self._tokens:
                return {"FileSystem": self._shown(self._file_system(self._tokens[ClientRequestToken]))}
        if FileSystemType == "LUSTRE":
            kind = _lustre(LustreConfiguration, FileSystemTypeVersion, StorageCapacity, StorageType, SubnetIds)
        else:
            kind = openzfs.described(
                OpenZFSConfiguration, capacity=StorageCapacity, storage_type=StorageType, subnets=SubnetIds
            )
        interface = self._network_interface(SubnetIds[0], SecurityGroupIds, lustre=FileSystemType == "LUSTRE")
        fs_id = f"fs-{_hex()}"
        record = {
            "OwnerId": self._account,
            "CreationTime": now(),
            "FileSystemId": fs_id,
            "FileSystemType": FileSystemType,
            "StorageCapacity": StorageCapacity,
            "StorageType": StorageType,
            "VpcId": interface["VpcId"],
            "SubnetIds": SubnetIds,
            "NetworkInterfaceIds": [interface["NetworkInterfaceId"]],
            "DNSName": f"{fs_id}.fsx.{self._region}.amazonaws.com",
            "KmsKeyId": KmsKeyId or f"arn:aws:kms:{self._region}:{self._account}:alias/aws/fsx",
            "ResourceARN": self._arn("file-system", fs_id),
            "Tags": tag_dict(Tags),
            "NetworkType": NetworkType,
            **kind,
        }
        with self._lock:
            self._file_systems[fs_id] = record
            if ClientRequestToken:
                self._tokens[ClientRequestToken] = fs_id
            return {"FileSystem": self._shown(record)}

    def describe_file_systems(
        self, *, FileSystemIds: list[str] | None = None, MaxResults: int | None = None, NextToken: str | None = None
    ) -> dict[str, Any]:
        with self._lock:
            self._purge()
            ids = FileSystemIds or list(self._file_systems)
            shown = [self._shown(self._file_system(fs_id)) for fs_id in ids]
        selected, more = page(shown, size=MaxResults, token=NextToken)
        return {"FileSystems": selected, **more}

    def update_file_system(
        self,
        *,
        FileSystemId: str,
        StorageCapacity: int | None = None,
        LustreConfiguration: dict[str, Any] | None = None,
        OpenZFSConfiguration: dict[str, Any] | None = None,
        ClientRequestToken: str = "",  # noqa: ARG002 - an update is idempotent anyway
        **unsupported: Any,
    ) -> dict[str, Any]:
        if unsupported:
            raise rules.bad_request(f"{next(iter(unsupported))} cannot be changed on a file system here.")
        with self._lock:
            record = self._available(FileSystemId)
            capacity = record["StorageCapacity"] if StorageCapacity is None else StorageCapacity
            if capacity != record["StorageCapacity"]:
                rules.check_growth(before=record["StorageCapacity"], after=capacity)
            if record["FileSystemType"] == "LUSTRE":
                record["LustreConfiguration"] = _changed_lustre(record, LustreConfiguration or {}, capacity)
            else:
                record["OpenZFSConfiguration"] = openzfs.changed(record, OpenZFSConfiguration or {}, capacity)
            record["StorageCapacity"] = capacity
            return {"FileSystem": self._shown(record)}

    def delete_file_system(
        self,
        *,
        FileSystemId: str,
        LustreConfiguration: dict[str, Any] | None = None,
        OpenZFSConfiguration: dict[str, Any] | None = None,
        ClientRequestToken: str = "",  # noqa: ARG002 - a second deletion finds nothing
        **_: Any,
    ) -> dict[str, Any]:
        if (LustreConfiguration or OpenZFSConfiguration or {}).get("SkipFinalBackup") is False:
            raise rules.not_available("final backups; set SkipFinalBackup to true")
        with self._lock:
            record = self._file_system(FileSystemId)
            already = "DeletionTime" in record
            record.setdefault("DeletionTime", now())
            interfaces = record["NetworkInterfaceIds"]
            for association in self._of_file_system(FileSystemId):
                association.setdefault("DeletionTime", now())
        if not already:
            self._remove_interface(interfaces[0])
        return {"FileSystemId": FileSystemId, "Lifecycle": "DELETING"}

    def tag_resource(self, *, ResourceARN: str, Tags: list[dict[str, str]]) -> dict[str, Any]:
        with self._lock:
            self._by_arn(ResourceARN)["Tags"].update(tag_dict(Tags))
        return {}

    def untag_resource(self, *, ResourceARN: str, TagKeys: list[str]) -> dict[str, Any]:
        with self._lock:
            tags = self._by_arn(ResourceARN)["Tags"]
            for key in TagKeys:
                tags.pop(key, None)
        return {}

    def list_tags_for_resource(
        self, *, ResourceARN: str, MaxResults: int | None = None, NextToken: str | None = None
    ) -> dict[str, Any]:
        with self._lock:
            tags = tag_list(self._by_arn(ResourceARN)["Tags"])
        selected, more = page(tags, size=MaxResults, token=NextToken)
        return {"Tags": selected, **more}

    def state(self) -> dict[str, Any]:
        with self._lock:
            self._purge()
            kept = (self._file_systems, self._associations, self._tokens)
            return copy.deepcopy(dict(zip(("file_systems", "associations", "tokens"), kept, strict=True)))

    def restore(self, state: dict[str, Any]) -> None:
        with self._lock:
            self._file_systems = state["file_systems"]
            self._associations = state["associations"]
            self._tokens = state["tokens"]

    def _arn(self, kind: str, name: str) -> str:
        return f"arn:aws:fsx:{self._region}:{self._account}:{kind}/{name}"

    def _purge(self) -> None:
        """Forget what was deleted a moment ago."""
        for records in (self._file_systems, self._associations):
            for key in [key for key, record in records.items() if elapsed(record.get("DeletionTime"))]:
                del records[key]
                self._tokens = {token: name for token, name in self._tokens.items() if name != key}

    def _file_system(self, fs_id: str) -> dict[str, Any]:
        self._purge()
        if fs_id not in self._file_systems:
            raise ServiceError("FileSystemNotFound", f"File system '{fs_id}' does not exist.")
        return self._file_systems[fs_id]

    def _available(self, fs_id: str) -> dict[str, Any]:
        record = self._file_system(fs_id)
        if "DeletionTime" in record:
            raise rules.bad_request(f"File system '{fs_id}' is being deleted.")
        return record

    def _by_arn(self, arn: str) -> dict[str, Any]:
        self._purge()
        for record in (*self._file_systems.values(), *self._associations.values()):
            if record["ResourceARN"] == arn:
                return record
        raise ServiceError("ResourceNotFound", f"The resource '{arn}' does not exist.")

    def _network_interface(self, subnet: str, security_groups: list[str] | None, *, lustre: bool) -> dict[str, Any]:
        """The interface through which clients reach the file system; also the check of subnet and groups."""
        groups = {"Groups": security_groups} if security_groups else {}
        ec2 = self._client("ec2")
        try:  # moto makes an interface without looking at its groups, and a default group without AWS's rules for it
            place = ec2.describe_subnets(SubnetIds=[subnet])["Subnets"][0]
            if security_groups:
                found = ec2.describe_security_groups(GroupIds=security_groups)["SecurityGroups"]
                if lustre:
                    check_lnet(found, subnet=place["CidrBlock"])
            answer = ec2.create_network_interface(SubnetId=subnet, Description="Created by Amazon FSx", **groups)
        except ClientError as error:
            message = error.response["Error"].get("Message", str(error))
            raise ServiceError("InvalidNetworkSettings", f"The network settings are not valid. {message}") from error
        interface: dict[str, Any] = answer["NetworkInterface"]
        return interface

    def _remove_interface(self, interface: str) -> None:
        try:
            self._client("ec2").delete_network_interface(NetworkInterfaceId=interface)
        except ClientError as error:
            if "NotFound" not in error.response["Error"]["Code"]:
                raise

    def _shown(self, record: dict[str, Any]) -> dict[str, Any]:
        """A record as Describe shows it."""
        answer = copy.deepcopy(record)
        if answer.pop("DeletionTime", None):
            answer["Lifecycle"] = "DELETING"
        else:
            answer["Lifecycle"] = "AVAILABLE" if elapsed(record["CreationTime"]) else "CREATING"
        answer["Tags"] = tag_list(record["Tags"])
        return answer


def _lustre(
    given: dict[str, Any] | None, version: str, capacity: int | None, storage_type: str, subnets: list[str]
) -> dict[str, Any]:
    """What a new Lustre file system has beside what every file system has."""
    lustre = {"DeploymentType": "SCRATCH_1", **(given or {})}
    version = version or rules.DEFAULT_VERSIONS[lustre["DeploymentType"]]
    rules.check_file_system(
        capacity=capacity, storage_type=storage_type, version=version, subnets=subnets, lustre=lustre
    )
    configuration = {**LUSTRE_DEFAULTS, **_repository_settings(lustre), "MountName": _mount_name(lustre)}
    return {"LustreConfiguration": configuration, "FileSystemTypeVersion": version}


def _changed_lustre(record: dict[str, Any], changes: dict[str, Any], capacity: int) -> dict[str, Any]:
    """The configuration after an update."""
    lustre: dict[str, Any] = {**record["LustreConfiguration"], **changes}
    if "MetadataConfiguration" in changes:
        metadata = record["LustreConfiguration"].get("MetadataConfiguration", {})
        lustre["MetadataConfiguration"] = {**metadata, **changes["MetadataConfiguration"]}
    before = record["LustreConfiguration"].get("PerUnitStorageThroughput")
    if lustre.get("EfaEnabled") and changes.get("PerUnitStorageThroughput", before) != before:
        raise rules.bad_request("The throughput of an EFA-enabled file system cannot be changed.")
    rules.check_file_system(
        capacity=capacity,
        storage_type=record["StorageType"],
        version=record["FileSystemTypeVersion"],
        subnets=record["SubnetIds"],
        lustre={key: value for key, value in lustre.items() if key != "DataRepositoryConfiguration"},
    )
    return lustre


def _repository_settings(lustre: dict[str, Any]) -> dict[str, Any]:
    """Older deployment types carry their data repository inside the configuration; Describe shows it in a structure."""
    keys = ("ImportPath", "ExportPath", "ImportedFileChunkSize", "AutoImportPolicy")
    repository = {key: lustre[key] for key in keys if key in lustre}
    kept = {key: value for key, value in lustre.items() if key not in keys}
    return {**kept, "DataRepositoryConfiguration": {"Lifecycle": "AVAILABLE", **repository}} if repository else kept


def _mount_name(lustre: dict[str, Any]) -> str:
    if lustre["DeploymentType"] == "SCRATCH_1":
        return "fsx"
    return "".join(secrets.choice(string.ascii_lowercase + string.digits) for _ in range(8))


def _hex() -> str:
    return secrets.token_hex(9)[:17]
