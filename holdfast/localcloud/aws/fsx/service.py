"""Amazon FSx: records of Lustre and OpenZFS file systems. The control plane has the files."""
# ruff: noqa: N803 - arguments bear the names of the API members

import secrets
import string
from collections.abc import Callable
from typing import Any, ClassVar

from botocore.exceptions import ClientError

from holdfast.localcloud.aws.clients import ClientFactory
from holdfast.localcloud.aws.common import ServiceError, now, page, tag_dict, tag_list
from holdfast.localcloud.aws.fsx import openzfs, rules
from holdfast.localcloud.aws.fsx.associations import Associations
from holdfast.localcloud.aws.fsx.network import check_lnet
from holdfast.localcloud.aws.fsx.records import Records, shown

LUSTRE_DEFAULTS = {
    "WeeklyMaintenanceStartTime": "7:05:00",
    "DataCompressionType": "NONE",
    "CopyTagsToBackups": False,
    "AutomaticBackupRetentionDays": 0,
}


class Fsx:
    PARTS: ClassVar[dict[str, type]] = {"associations": Associations}

    def __init__(self, *, client: ClientFactory, account: str, region: str) -> None:
        self.on_change: Callable[[], None] = lambda: None
        self._client = client
        self._records = Records(account=account, region=region)
        self.associations = Associations(records=self._records, client=client)

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
        with self._records.lock:
            if ClientRequestToken in self._records.tokens:
                return {"FileSystem": shown(self._records.file_system(self._records.tokens[ClientRequestToken]))}
        if FileSystemType == "LUSTRE":
            kind = _lustre(LustreConfiguration, FileSystemTypeVersion, StorageCapacity, StorageType, SubnetIds)
        else:
            kind = openzfs.described(
                OpenZFSConfiguration, capacity=StorageCapacity, storage_type=StorageType, subnets=SubnetIds
            )
        interface = self._network_interface(SubnetIds[0], SecurityGroupIds, lustre=FileSystemType == "LUSTRE")
        fs_id = f"fs-{_hex()}"
        record = {
            "OwnerId": self._records.account,
            "CreationTime": now(),
            "FileSystemId": fs_id,
            "FileSystemType": FileSystemType,
            "StorageCapacity": StorageCapacity,
            "StorageType": StorageType,
            "VpcId": interface["VpcId"],
            "SubnetIds": SubnetIds,
            "NetworkInterfaceIds": [interface["NetworkInterfaceId"]],
            "DNSName": f"{fs_id}.fsx.{self._records.region}.amazonaws.com",
            "KmsKeyId": KmsKeyId or f"arn:aws:kms:{self._records.region}:{self._records.account}:alias/aws/fsx",
            "ResourceARN": self._records.arn("file-system", fs_id),
            "Tags": tag_dict(Tags),
            "NetworkType": NetworkType,
            **kind,
        }
        with self._records.lock:
            self._records.file_systems[fs_id] = record
            if ClientRequestToken:
                self._records.tokens[ClientRequestToken] = fs_id
            return {"FileSystem": shown(record)}

    def describe_file_systems(
        self, *, FileSystemIds: list[str] | None = None, MaxResults: int | None = None, NextToken: str | None = None
    ) -> dict[str, Any]:
        with self._records.lock:
            self._records.purge()
            ids = FileSystemIds or list(self._records.file_systems)
            answers = [shown(self._records.file_system(fs_id)) for fs_id in ids]
        selected, more = page(answers, size=MaxResults, token=NextToken)
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
        with self._records.lock:
            record = self._records.available(FileSystemId)
            capacity = record["StorageCapacity"] if StorageCapacity is None else StorageCapacity
            if capacity != record["StorageCapacity"]:
                rules.check_growth(before=record["StorageCapacity"], after=capacity)
            if record["FileSystemType"] == "LUSTRE":
                record["LustreConfiguration"] = _changed_lustre(record, LustreConfiguration or {}, capacity)
            else:
                record["OpenZFSConfiguration"] = openzfs.changed(record, OpenZFSConfiguration or {}, capacity)
            record["StorageCapacity"] = capacity
            return {"FileSystem": shown(record)}

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
        with self._records.lock:
            record = self._records.file_system(FileSystemId)
            already = "DeletionTime" in record
            record.setdefault("DeletionTime", now())
            interfaces = record["NetworkInterfaceIds"]
            for association in self._records.associations_of(FileSystemId):
                association.setdefault("DeletionTime", now())
        if not already:
            self._remove_interface(interfaces[0])
        return {"FileSystemId": FileSystemId, "Lifecycle": "DELETING"}

    def tag_resource(self, *, ResourceARN: str, Tags: list[dict[str, str]]) -> dict[str, Any]:
        with self._records.lock:
            self._records.by_arn(ResourceARN)["Tags"].update(tag_dict(Tags))
        return {}

    def untag_resource(self, *, ResourceARN: str, TagKeys: list[str]) -> dict[str, Any]:
        with self._records.lock:
            tags = self._records.by_arn(ResourceARN)["Tags"]
            for key in TagKeys:
                tags.pop(key, None)
        return {}

    def list_tags_for_resource(
        self, *, ResourceARN: str, MaxResults: int | None = None, NextToken: str | None = None
    ) -> dict[str, Any]:
        with self._records.lock:
            tags = tag_list(self._records.by_arn(ResourceARN)["Tags"])
        selected, more = page(tags, size=MaxResults, token=NextToken)
        return {"Tags": selected, **more}

    def state(self) -> dict[str, Any]:
        return self._records.dump()

    def restore(self, state: dict[str, Any]) -> None:
        self._records.load(state)

    def _network_interface(self, subnet: str, security_groups: list[str] | None, *, lustre: bool) -> dict[str, Any]:
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


def _lustre(
    given: dict[str, Any] | None, version: str, capacity: int | None, storage_type: str, subnets: list[str]
) -> dict[str, Any]:
    lustre = {"DeploymentType": "SCRATCH_1", **(given or {})}
    version = version or rules.DEFAULT_VERSIONS[lustre["DeploymentType"]]
    rules.check_file_system(
        capacity=capacity, storage_type=storage_type, version=version, subnets=subnets, lustre=lustre
    )
    configuration = {**LUSTRE_DEFAULTS, **_repository_settings(lustre), "MountName": _mount_name(lustre)}
    return {"LustreConfiguration": configuration, "FileSystemTypeVersion": version}


def _changed_lustre(record: dict[str, Any], changes: dict[str, Any], capacity: int) -> dict[str, Any]:
    lustre: dict[str, Any] = {**record["LustreConfiguration"], **changes}
    if "MetadataConfiguration" in changes:
        metadata = record["LustreConfiguration"].get("MetadataConfiguration", {})
        lustre["MetadataConfiguration"] = {**metadata, **changes["MetadataConfiguration"]}
        grows = capacity != record["StorageCapacity"]
        rules.check_metadata_growth(before=metadata, after=lustre["MetadataConfiguration"], capacity_grows=grows)
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
    """Older deployment types have the data repository in the configuration; Describe shows it as a structure."""
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
