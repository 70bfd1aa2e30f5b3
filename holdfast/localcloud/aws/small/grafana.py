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
        configuration: str = "{}",
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
                "authentication": {"providers": authenticationProviders, **_saml(authenticationProviders, None)},
                "tags": dict(tags or {}),
                "saml": None,
                "configuration": configuration,
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

    def update_workspace(
        self,
        *,
        workspaceId: str,
        removeVpcConfiguration: bool = False,
        removeNetworkAccessConfiguration: bool = False,
        **settings: Any,
    ) -> dict[str, Any]:
        with self._lock:
            record = self._active(workspaceId)
            record.content |= {**_renamed(settings), "modified": now()}
            if removeVpcConfiguration:
                record.content.pop("vpcConfiguration", None)
            if removeNetworkAccessConfiguration:
                record.content.pop("networkAccessControl", None)
            record.begin("UPDATING")
            return {"workspace": self._shown(workspaceId)}

    def update_workspace_authentication(
        self,
        *,
        workspaceId: str,
        authenticationProviders: list[str],
        samlConfiguration: dict[str, Any] | None = None,
    ) -> dict[str, Any]:
        if samlConfiguration and "SAML" not in authenticationProviders:
            raise ServiceError("ValidationException", "samlConfiguration needs the authentication provider SAML")
        with self._lock:
            content = self._active(workspaceId).content
            content["saml"] = samlConfiguration
            content["authentication"] = {
                "providers": authenticationProviders,
                **_saml(authenticationProviders, samlConfiguration),
            }
        return self.describe_workspace_authentication(workspaceId=workspaceId)

    def describe_workspace_authentication(self, *, workspaceId: str) -> dict[str, Any]:
        with self._lock:
            content = copy.deepcopy(self._workspaces.get(workspaceId).content)
        authentication: dict[str, Any] = {"providers": content["authentication"]["providers"]}
        if "SAML" in authentication["providers"]:
            status = content["authentication"]["samlConfigurationStatus"]
            reported = {"configuration": content["saml"]} if content["saml"] else {}
            authentication["saml"] = {"status": status, **reported}
        if "AWS_SSO" in authentication["providers"]:
            authentication["awsSso"] = {"ssoClientId": f"ins-{content['id']}"}
        return {"authentication": authentication}

    def update_workspace_configuration(
        self, *, workspaceId: str, configuration: str, grafanaVersion: str = ""
    ) -> dict[str, Any]:
        with self._lock:
            record = self._active(workspaceId)
            record.content["configuration"] = configuration
            if grafanaVersion:
                record.content["grafanaVersion"] = grafanaVersion
            record.begin("UPDATING")
        return {}

    def describe_workspace_configuration(self, *, workspaceId: str) -> dict[str, Any]:
        with self._lock:
            content = self._workspaces.get(workspaceId).content
            return {"configuration": content["configuration"], "grafanaVersion": content["grafanaVersion"]}

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
        content = copy.deepcopy(record.content)
        for key in ("saml", "configuration"):
            del content[key]
        return {**content, "status": record.status(settled="ACTIVE")}

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


def _saml(providers: list[str], configuration: dict[str, Any] | None) -> dict[str, str]:
    if "SAML" not in providers:
        return {}
    return {"samlConfigurationStatus": "CONFIGURED" if configuration else "NOT_CONFIGURED"}
