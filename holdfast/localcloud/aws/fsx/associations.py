"""Data repository associations: which S3 prefixes a Lustre file system shows, and what crosses by itself."""
# ruff: noqa: N803 - arguments bear the names of the API members

import secrets
import threading
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

from botocore.exceptions import ClientError

from holdfast.localcloud.aws.clients import ClientFactory
from holdfast.localcloud.aws.common import ServiceError, now, page, tag_dict
from holdfast.localcloud.aws.fsx import rules

TRANSITION = timedelta(seconds=0.3)
IMPORTED_FILE_CHUNK_MIB = 1024


class Associations:
    """The association operations; `Fsx` owns the attributes."""

    _client: ClientFactory
    _lock: threading.RLock
    _associations: dict[str, dict[str, Any]]
    _tokens: dict[str, str]

    _purge: Callable[[], None]
    _available: Callable[[str], dict[str, Any]]
    _arn: Callable[[str, str], str]
    _shown: Callable[[dict[str, Any]], dict[str, Any]]

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
        with self._lock:
            if ClientRequestToken in self._tokens:
                return {"Association": self._shown(self._association(self._tokens[ClientRequestToken]))}
            self._check_association(FileSystemId, FileSystemPath, DataRepositoryPath)
        rules.check_events(S3 or {})
        self._check_bucket(DataRepositoryPath)
        association_id = f"dra-{secrets.token_hex(9)[:17]}"
        record = {
            "AssociationId": association_id,
            "ResourceARN": self._arn("association", f"{FileSystemId}/{association_id}"),
            "FileSystemId": FileSystemId,
            "FileSystemPath": FileSystemPath,
            "DataRepositoryPath": DataRepositoryPath,
            "BatchImportMetaDataOnCreate": BatchImportMetaDataOnCreate,
            "ImportedFileChunkSize": ImportedFileChunkSize,
            "S3": S3 or {},
            "Tags": tag_dict(Tags),
            "CreationTime": now(),
        }
        with self._lock:
            self._check_association(FileSystemId, FileSystemPath, DataRepositoryPath)
            self._associations[association_id] = record
            if ClientRequestToken:
                self._tokens[ClientRequestToken] = association_id
            return {"Association": self._shown(record)}

    def describe_data_repository_associations(
        self,
        *,
        AssociationIds: list[str] | None = None,
        Filters: list[dict[str, Any]] | None = None,
        MaxResults: int | None = None,
        NextToken: str | None = None,
    ) -> dict[str, Any]:
        with self._lock:
            self._purge()
            found = [self._association(name) for name in AssociationIds or list(self._associations)]
            for wanted in Filters or []:
                found = [record for record in found if _passes(record, wanted)]
            shown = [self._shown(record) for record in found]
        selected, more = page(shown, size=MaxResults, token=NextToken, default=25)
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
        with self._lock:
            record = self._association(AssociationId)
            if "DeletionTime" in record:
                raise rules.bad_request(f"Data repository association {AssociationId} is being deleted.")
            if ImportedFileChunkSize is not None:
                record["ImportedFileChunkSize"] = ImportedFileChunkSize
            if S3 is not None:
                record["S3"] = {**record["S3"], **S3}
            return {"Association": self._shown(record)}

    def delete_data_repository_association(
        self,
        *,
        AssociationId: str,
        DeleteDataInFileSystem: bool = False,
        ClientRequestToken: str = "",  # noqa: ARG002 - a second deletion finds nothing
    ) -> dict[str, Any]:
        with self._lock:
            self._association(AssociationId).setdefault("DeletionTime", now())
        return {
            "AssociationId": AssociationId,
            "Lifecycle": "DELETING",
            "DeleteDataInFileSystem": DeleteDataInFileSystem,
        }

    def _association(self, name: str) -> dict[str, Any]:
        self._purge()
        if name not in self._associations:
            raise ServiceError(
                "DataRepositoryAssociationNotFound", f"Data repository association '{name}' does not exist."
            )
        return self._associations[name]

    def _of_file_system(self, fs_id: str) -> list[dict[str, Any]]:
        return [record for record in self._associations.values() if record["FileSystemId"] == fs_id]

    def _check_association(self, fs_id: str, path: str, repository: str) -> None:
        file_system = self._available(fs_id)
        if file_system["FileSystemType"] != "LUSTRE":
            raise rules.bad_request(f"File system '{fs_id}' is not a Lustre file system.")
        rules.check_association(
            path=path,
            repository=repository,
            lustre=file_system["LustreConfiguration"],
            version=file_system["FileSystemTypeVersion"],
            existing=self._of_file_system(fs_id),
        )

    def _check_bucket(self, repository: str) -> None:
        bucket = repository.removeprefix("s3://").partition("/")[0]
        try:
            self._client("s3").head_bucket(Bucket=bucket)
        except ClientError as error:
            raise rules.bad_request(
                f"Amazon FSx is unable to validate access to the S3 bucket {bucket}. Ensure the bucket exists."
            ) from error


def _passes(record: dict[str, Any], wanted: dict[str, Any]) -> bool:
    known = {"file-system-id": record["FileSystemId"], "data-repository-type": "S3", "file-system-type": "LUSTRE"}
    if wanted.get("Name") not in known:
        raise rules.bad_request(f"The filter {wanted.get('Name')} is not supported; use {', '.join(known)}.")
    return known[wanted["Name"]] in wanted.get("Values", ())


def elapsed(moment: datetime | None) -> bool:
    """Whether what began then is over."""
    return moment is not None and now() - moment >= TRANSITION
