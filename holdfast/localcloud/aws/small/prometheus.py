"""Alert manager definitions of Amazon Managed Service for Prometheus, which moto lacks. Records only."""

# ruff: noqa: N803, ARG002 - arguments bear the names of the API members; client tokens are not needed here

import copy
import threading
from typing import Any

import yaml

from holdfast.localcloud.aws.clients import ClientFactory
from holdfast.localcloud.aws.common import Record, RecordStore, ServiceError, now


class AlertManager:
    def __init__(self, *, client: ClientFactory, **_: Any) -> None:
        self._client = client
        self._lock = threading.RLock()
        self._definitions = RecordStore(
            lambda key: ServiceError("ResourceNotFoundException", f"Alert manager definition not found: {key}", 404)
        )

    def create_alert_manager_definition(
        self, *, workspaceId: str, data: bytes, clientToken: str = ""
    ) -> dict[str, Any]:
        known = {each["workspaceId"] for each in self._client("amp").list_workspaces()["workspaces"]}
        if workspaceId not in known:
            raise ServiceError("ResourceNotFoundException", f"Workspace not found: {workspaceId}", 404)
        with self._lock:
            if self._definitions.find(workspaceId) is not None:
                raise ServiceError("ConflictException", f"The workspace {workspaceId} already has one", 409)
            moment = now()
            content = {"data": _yaml(data), "createdAt": moment, "modifiedAt": moment}
            return _status(self._definitions.add(workspaceId, content))

    def put_alert_manager_definition(self, *, workspaceId: str, data: bytes, clientToken: str = "") -> dict[str, Any]:
        with self._lock:
            record = self._definitions.get(workspaceId)
            record.content |= {"data": _yaml(data), "modifiedAt": now()}
            record.begin("UPDATING")
            return _status(record)

    def describe_alert_manager_definition(self, *, workspaceId: str) -> dict[str, Any]:
        with self._lock:
            record = self._definitions.get(workspaceId)
            return {"alertManagerDefinition": {**copy.deepcopy(record.content), **_status(record)}}

    def delete_alert_manager_definition(self, *, workspaceId: str, clientToken: str = "") -> None:
        with self._lock:
            self._definitions.get(workspaceId).begin("DELETING")

    def state(self) -> list[Any]:
        with self._lock:
            return self._definitions.dump()

    def restore(self, state: list[Any]) -> None:
        with self._lock:
            self._definitions.load(state)


def _status(record: Record) -> dict[str, Any]:
    return {"status": {"statusCode": record.status(settled="ACTIVE")}}


def _yaml(data: bytes) -> bytes:
    try:
        parsed = yaml.safe_load(data)
    except yaml.YAMLError as error:
        raise ServiceError("ValidationException", f"Invalid configuration: {error}") from None
    if not isinstance(parsed, dict):
        raise ServiceError("ValidationException", "Invalid configuration: it is not a mapping")
    return data
