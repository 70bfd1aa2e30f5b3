"""Data repository associations: S3 prefixes shown by a Lustre file system."""
# ruff: noqa: N803 - arguments bear the names of the API members

import secrets
from typing import Any

from botocore.exceptions import ClientError

from holdfast.localcloud.aws.clients import ClientFactory
from holdfast.localcloud.aws.common import now, page, tag_dict
from holdfast.localcloud.aws.fsx import rules
from holdfast.localcloud.aws.fsx.records import Records, shown

IMPORTED_FILE_CHUNK_MIB = 1024


class Associations:
    def __init__(self, *, records: Records, client: ClientFactory) -> None:
        self._records, self._client = records, client

    def create_data_repository_association(
        self,
        *,
        FileSystemId: str,
        DataRepositoryPath: str,
        FileSystemPath: str = "/",
        BatchImportMetaDataOnCreate: bool = False,
        ImportedFileChunkSize: int = IMPORTED_FILE_CHUNK_MIB,
        S3: dict[str, Any] | None = None,
        ClientRequestToken: str = "",
        Tags: list[dict[str, str]] | None = None,
    ) -> dict[str, Any]:
        with self._records.lock:
            if ClientRequestToken in self._records.tokens:
                return {"Association": shown(self._records.association(self._records.tokens[ClientRequestToken]))}
            self._check_association(FileSystemId, FileSystemPath, DataRepositoryPath)
        rules.check_events(S3 or {})
        self._check_bucket(DataRepositoryPath)
        association_id = f"dra-{secrets.token_hex(9)[:17]}"
        record = {
            "AssociationId": association_id,
            "ResourceARN": self._records.arn("association", f"{FileSystemId}/{association_id}"),
            "FileSystemId": FileSystemId,
            "FileSystemPath": FileSystemPath,
            "DataRepositoryPath": DataRepositoryPath,
            "BatchImportMetaDataOnCreate": BatchImportMetaDataOnCreate,
            "ImportedFileChunkSize": ImportedFileChunkSize,
            "S3": S3 or {},
            "Tags": tag_dict(Tags),
            "CreationTime": now(),
        }
        with self._records.lock:
            self._check_association(FileSystemId, FileSystemPath, DataRepositoryPath)
            self._records.associations[association_id] = record
            if ClientRequestToken:
                self._records.tokens[ClientRequestToken] = association_id
            return {"Association": shown(record)}

    def describe_data_repository_associations(
        self,
        *,
        AssociationIds: list[str] | None = None,
        Filters: list[dict[str, Any]] | None = None,
        MaxResults: int | None = None,
        NextToken: str | None = None,
    ) -> dict[str, Any]:
        with self._records.lock:
            self._records.purge()
            found = [self._records.association(name) for name in AssociationIds or list(self._records.associations)]
            for desired in Filters or []:
                found = [record for record in found if _passes(record, desired)]
            answers = [shown(record) for record in found]
        selected, more = page(answers, size=MaxResults, token=NextToken, default=25)
        return {"Associations": selected, **more}

    def update_data_repository_association(
        self,
        *,
        AssociationId: str,
        ImportedFileChunkSize: int | None = None,
        S3: dict[str, Any] | None = None,
        ClientRequestToken: str = "",  # noqa: ARG002 - an update is idempotent anyway
    ) -> dict[str, Any]:
        rules.check_events(S3 or {})
        with self._records.lock:
            record = self._records.association(AssociationId)
            if "DeletionTime" in record:
                raise rules.bad_request(f"Data repository association {AssociationId} is being deleted.")
            if ImportedFileChunkSize is not None:
                record["ImportedFileChunkSize"] = ImportedFileChunkSize
            if S3 is not None:
                record["S3"] = {**record["S3"], **S3}
            return {"Association": shown(record)}

    def delete_data_repository_association(
        self,
        *,
        AssociationId: str,
        DeleteDataInFileSystem: bool = False,
        ClientRequestToken: str = "",  # noqa: ARG002 - a second deletion finds nothing
    ) -> dict[str, Any]:
        with self._records.lock:
            self._records.association(AssociationId).setdefault("DeletionTime", now())
        return {
            "AssociationId": AssociationId,
            "Lifecycle": "DELETING",
            "DeleteDataInFileSystem": DeleteDataInFileSystem,
        }

    def _check_association(self, fs_id: str, path: str, repository: str) -> None:
        file_system = self._records.available(fs_id)
        if file_system["FileSystemType"] != "LUSTRE":
            raise rules.bad_request(f"File system '{fs_id}' is not a Lustre file system.")
        rules.check_association(
            path=path,
            repository=repository,
            lustre=file_system["LustreConfiguration"],
            version=file_system["FileSystemTypeVersion"],
            existing=self._records.associations_of(fs_id),
        )

    def _check_bucket(self, repository: str) -> None:
        bucket = repository.removeprefix("s3://").partition("/")[0]
        try:
            self._client("s3").head_bucket(Bucket=bucket)
        except ClientError as error:
            raise rules.bad_request(
                f"Amazon FSx is unable to validate access to the S3 bucket {bucket}. Ensure the bucket exists."
            ) from error


def _passes(record: dict[str, Any], desired: dict[str, Any]) -> bool:
    known = {"file-system-id": record["FileSystemId"], "data-repository-type": "S3", "file-system-type": "LUSTRE"}
    if desired.get("Name") not in known:
        raise rules.bad_request(f"The filter {desired.get('Name')} is not supported; use {', '.join(known)}.")
    return known[desired["Name"]] in desired.get("Values", ())
