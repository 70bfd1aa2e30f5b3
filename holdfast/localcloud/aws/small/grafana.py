"""Amazon Managed Grafana: workspaces and authentication. Records only."""

# ruff: noqa: N803 - arguments bear the names of the API members

import copy
import secrets
import threading
from collections.abc import Callable
from typing import Any

from holdfast.localcloud.aws.clients import ClientFactory
from holdfast.localcloud.aws.common import Record, RecordStore, ServiceError, now, paged

PREFIXED = {
    "workspaceDataSources": "dataSources",
    "workspaceDescription": "description",
    "workspaceName": "name",
    "workspaceNotificationDestinations": "notificationDestinations",
    "workspaceOrganizationalUnits": "organizationalUnits",
}
"""Members with different names in requests and answers."""


class Grafana:
    def __init__(self, *, client: ClientFactory, account: str, region: str) -> None:
        self.on_change: Callable[[], None] = lambda: None
        self._client, self._account, self._region = client, account, region
        self._lock = threading.RLock()
        self._workspaces = RecordStore(
            lambda key: ServiceError("ResourceNotFoundException", f"Workspace not found: {key}", 404)
        )

    def create_workspace(
        self,
        *,
        authenticationProviders: list[str],
        tags: dict[str, str] | None = None,
        clientToken: str = "",  # noqa: ARG002 - a repetition makes a second one, as without a token
        **settings: Any,
    ) -> dict[str, Any]:
        units = settings.get("workspaceOrganizationalUnits")
        if settings["accountAccessType"] == "ORGANIZATION" and not units:
            raise ServiceError("ValidationException", "ORGANIZATION access needs workspaceOrganizationalUnits")
        with self._lock:
            name = f"g-{secrets.token_hex(5)}"
            moment = now()
            content = {
                "id": name,
                "created": moment,
                "modified": moment,
                "endpoint": f"{name}.grafana-workspace.{self._region}.amazonaws.com",
                "grafanaVersion": "10.4",
                "dataSources": [],
                "notificationDestinations": [],
                "authentication": _authentication(authenticationProviders),
                "tags": dict(tags or {}),
                **_renamed(settings),
            }
            self._workspaces.add(name, content)
            return {"workspace": self._shown(name)}

    def describe_workspace(self, *, workspaceId: str) -> dict[str, Any]:
        with self._lock:
            return {"workspace": self._shown(workspaceId)}

    def list_workspaces(self, *, maxResults: int | None = None, nextToken: str | None = None) -> dict[str, Any]:
        with self._lock:
            found = [self._shown(name) for name, _ in self._workspaces.items()]
        return paged("workspaces", found, maxResults, nextToken)

    def update_workspace(self, *, workspaceId: str, **settings: Any) -> dict[str, Any]:
        with self._lock:
            record = self._active(workspaceId)
            record.content |= {**_renamed(settings), "modified": now()}
            record.begin("UPDATING")
            return {"workspace": self._shown(workspaceId)}

    def update_workspace_authentication(
        self, *, workspaceId: str, authenticationProviders: list[str]
    ) -> dict[str, Any]:
        with self._lock:
            self._active(workspaceId).content["authentication"] = _authentication(authenticationProviders)
        return {"authentication": {"providers": authenticationProviders}}

    def delete_workspace(self, *, workspaceId: str) -> dict[str, Any]:
        with self._lock:
            self._workspaces.get(workspaceId).begin("DELETING")
            return {"workspace": self._shown(workspaceId)}

    def tag_resource(self, *, resourceArn: str, tags: dict[str, str]) -> None:
        with self._lock:
            self._tagged(resourceArn).update(tags)

    def untag_resource(self, *, resourceArn: str, tagKeys: list[str]) -> None:
        with self._lock:
            for key in tagKeys:
                self._tagged(resourceArn).pop(key, None)

    def list_tags_for_resource(self, *, resourceArn: str) -> dict[str, Any]:
        with self._lock:
            return {"tags": dict(self._tagged(resourceArn))}

    def state(self) -> list[Any]:
        with self._lock:
            return self._workspaces.dump()

    def restore(self, state: list[Any]) -> None:
        with self._lock:
            self._workspaces.load(state)

    def _shown(self, name: str) -> dict[str, Any]:
        record = self._workspaces.get(name)
        return {**copy.deepcopy(record.content), "status": record.status(settled="ACTIVE")}

    def _active(self, name: str) -> Record:
        record = self._workspaces.get(name)
        if record.busy:
            raise ServiceError("ConflictException", f"The workspace {name} is {record.doing}", 409)
        return record

    def _tagged(self, arn: str) -> dict[str, str]:
        tags: dict[str, str] = self._workspaces.get(arn.rsplit("/", 1)[-1]).content["tags"]
        return tags


def _renamed(settings: dict[str, Any]) -> dict[str, Any]:
    return {PREFIXED.get(key, key): value for key, value in settings.items()}


def _authentication(providers: list[str]) -> dict[str, Any]:
    status = {"samlConfigurationStatus": "NOT_CONFIGURED"} if "SAML" in providers else {}
    return {"providers": providers, **status}
