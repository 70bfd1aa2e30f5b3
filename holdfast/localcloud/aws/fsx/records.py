"""Records of file systems and associations, whose Lifecycle changes by the clock when they are read."""

import copy
import threading
from datetime import datetime, timedelta
from typing import Any

from holdfast.localcloud.aws.common import ServiceError, now, tag_list
from holdfast.localcloud.aws.fsx import rules

TRANSITION = timedelta(seconds=0.3)


class Records:
    """Records of one account and region, behind one lock that callers hold."""

    def __init__(self, *, account: str, region: str) -> None:
        self.account, self.region = account, region
        self.lock = threading.RLock()
        self.file_systems: dict[str, dict[str, Any]] = {}
        self.associations: dict[str, dict[str, Any]] = {}
        self.tokens: dict[str, str] = {}
        """Token of a request that created something -> what it created."""

    def arn(self, kind: str, name: str) -> str:
        return f"arn:aws:fsx:{self.region}:{self.account}:{kind}/{name}"

    def purge(self) -> None:
        for records in (self.file_systems, self.associations):
            for key in [key for key, record in records.items() if _elapsed(record.get("DeletionTime"))]:
                del records[key]
                self.tokens = {token: name for token, name in self.tokens.items() if name != key}

    def file_system(self, fs_id: str) -> dict[str, Any]:
        self.purge()
        if fs_id not in self.file_systems:
            raise ServiceError("FileSystemNotFound", f"File system '{fs_id}' does not exist.")
        return self.file_systems[fs_id]

    def available(self, fs_id: str) -> dict[str, Any]:
        """Return a file system that is not being deleted."""
        record = self.file_system(fs_id)
        if "DeletionTime" in record:
            raise rules.bad_request(f"File system '{fs_id}' is being deleted.")
        return record

    def association(self, name: str) -> dict[str, Any]:
        self.purge()
        if name not in self.associations:
            raise ServiceError(
                "DataRepositoryAssociationNotFound", f"Data repository association '{name}' does not exist."
            )
        return self.associations[name]

    def associations_of(self, fs_id: str) -> list[dict[str, Any]]:
        return [record for record in self.associations.values() if record["FileSystemId"] == fs_id]

    def by_arn(self, arn: str) -> dict[str, Any]:
        self.purge()
        for record in (*self.file_systems.values(), *self.associations.values()):
            if record["ResourceARN"] == arn:
                return record
        raise ServiceError("ResourceNotFound", f"The resource '{arn}' does not exist.")

    def dump(self) -> dict[str, Any]:
        with self.lock:
            self.purge()
            kept = {"file_systems": self.file_systems, "associations": self.associations, "tokens": self.tokens}
            return copy.deepcopy(kept)

    def load(self, kept: dict[str, Any]) -> None:
        with self.lock:
            self.file_systems = kept["file_systems"]
            self.associations = kept["associations"]
            self.tokens = kept["tokens"]


def shown(record: dict[str, Any]) -> dict[str, Any]:
    answer = copy.deepcopy(record)
    if answer.pop("DeletionTime", None):
        answer["Lifecycle"] = "DELETING"
    else:
        answer["Lifecycle"] = "AVAILABLE" if _elapsed(record["CreationTime"]) else "CREATING"
    answer["Tags"] = tag_list(record["Tags"])
    return answer


def _elapsed(moment: datetime | None) -> bool:
    return moment is not None and now() - moment >= TRANSITION
