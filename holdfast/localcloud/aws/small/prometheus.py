"""Amazon Managed Service for Prometheus: workspaces, rules, alert manager definitions and logging. Records only."""

# ruff: noqa: N803, ARG002 - arguments bear the names of the API members; client tokens are not needed here

import copy
import threading
import uuid
from collections.abc import Callable
from typing import Any

import yaml

from holdfast.localcloud.aws.clients import ClientFactory
from holdfast.localcloud.aws.common import Record, RecordStore, ServiceError, now, paged


def _missing(what: str) -> Callable[[Any], ServiceError]:
    return lambda key: ServiceError("ResourceNotFoundException", f"{what} not found: {key}", 404)


class Amp:
    def __init__(self, *, client: ClientFactory, account: str, region: str) -> None:
        self.on_change: Callable[[], None] = lambda: None
        self._client, self._account, self._region = client, account, region
        self._lock = threading.RLock()
        self._workspaces = RecordStore(_missing("Workspace"))
        self._parts = {
            "alertManagerDefinition": RecordStore(_missing("Alert manager definition")),
            "loggingConfiguration": RecordStore(_missing("Logging configuration")),
        }
        self._rules = RecordStore(_missing("Rule groups namespace"))

    def create_workspace(
        self, *, alias: str = "", kmsKeyArn: str = "", tags: dict[str, str] | None = None, clientToken: str = ""
    ) -> dict[str, Any]:
        with self._lock:
            name = f"ws-{uuid.uuid4()}"
            place = f"https://aps-workspaces.{self._region}.amazonaws.com/workspaces"
            content = {
                "workspaceId": name,
                "arn": self._arn("workspace", name),
                "prometheusEndpoint": f"{place}/{name}/",
                "createdAt": now(),
                "tags": dict(tags or {}),
                **({"alias": alias} if alias else {}),
                **({"kmsKeyArn": kmsKeyArn} if kmsKeyArn else {}),
            }
            self._workspaces.add(name, content)
            return self._workspace(name)

    def describe_workspace(self, *, workspaceId: str) -> dict[str, Any]:
        with self._lock:
            return {"workspace": self._workspace(workspaceId)}

    def list_workspaces(
        self, *, alias: str = "", maxResults: int | None = None, nextToken: str | None = None
    ) -> dict[str, Any]:
        with self._lock:
            found = [self._workspace(name) for name, _ in self._workspaces.items()]
        chosen = [one for one in found if one.get("alias", "").startswith(alias)]
        return paged("workspaces", chosen, maxResults, nextToken)

    def update_workspace_alias(self, *, workspaceId: str, alias: str = "", clientToken: str = "") -> None:
        with self._lock:
            self._active(workspaceId).content["alias"] = alias

    def delete_workspace(self, *, workspaceId: str, clientToken: str = "") -> None:
        with self._lock:
            self._workspaces.get(workspaceId).begin("DELETING")
            for shelf in self._parts.values():
                shelf.forget(workspaceId)
            for key in [key for key, _ in self._rules.items() if key[0] == workspaceId]:
                self._rules.forget(key)

    def create_alert_manager_definition(
        self, *, workspaceId: str, data: bytes, clientToken: str = ""
    ) -> dict[str, Any]:
        return self._put_part("alertManagerDefinition", workspaceId, {"data": _yaml(data)}, fresh=True)

    def put_alert_manager_definition(self, *, workspaceId: str, data: bytes, clientToken: str = "") -> dict[str, Any]:
        return self._put_part("alertManagerDefinition", workspaceId, {"data": _yaml(data)})

    def describe_alert_manager_definition(self, *, workspaceId: str) -> dict[str, Any]:
        return self._part("alertManagerDefinition", workspaceId)

    def delete_alert_manager_definition(self, *, workspaceId: str, clientToken: str = "") -> None:
        self._drop_part("alertManagerDefinition", workspaceId)

    def create_logging_configuration(
        self, *, workspaceId: str, logGroupArn: str, clientToken: str = ""
    ) -> dict[str, Any]:
        content = {"workspace": workspaceId, "logGroupArn": logGroupArn}
        return self._put_part("loggingConfiguration", workspaceId, content, fresh=True)

    def update_logging_configuration(
        self, *, workspaceId: str, logGroupArn: str, clientToken: str = ""
    ) -> dict[str, Any]:
        return self._put_part("loggingConfiguration", workspaceId, {"logGroupArn": logGroupArn})

    def describe_logging_configuration(self, *, workspaceId: str) -> dict[str, Any]:
        return self._part("loggingConfiguration", workspaceId)

    def delete_logging_configuration(self, *, workspaceId: str, clientToken: str = "") -> None:
        self._drop_part("loggingConfiguration", workspaceId)

    def create_rule_groups_namespace(
        self, *, workspaceId: str, name: str, data: bytes, tags: dict[str, str] | None = None, clientToken: str = ""
    ) -> dict[str, Any]:
        with self._lock:
            self._active(workspaceId)
            if self._rules.find((workspaceId, name)) is not None:
                raise ServiceError("ConflictException", f"Rule groups namespace already exists: {name}", 409)
            content = {
                "name": name,
                "arn": self._arn("rulegroupsnamespace", f"{workspaceId}/{name}"),
                "data": _yaml(data),
                "createdAt": now(),
                "modifiedAt": now(),
                "tags": dict(tags or {}),
            }
            self._rules.add((workspaceId, name), content)
            return self._namespace(workspaceId, name)

    def put_rule_groups_namespace(
        self, *, workspaceId: str, name: str, data: bytes, clientToken: str = ""
    ) -> dict[str, Any]:
        with self._lock:
            record = self._rules.get((workspaceId, name))
            record.content |= {"data": _yaml(data), "modifiedAt": now()}
            record.begin("UPDATING")
            return self._namespace(workspaceId, name)

    def describe_rule_groups_namespace(self, *, workspaceId: str, name: str) -> dict[str, Any]:
        with self._lock:
            return {"ruleGroupsNamespace": self._namespace(workspaceId, name)}

    def list_rule_groups_namespaces(
        self, *, workspaceId: str, name: str = "", maxResults: int | None = None, nextToken: str | None = None
    ) -> dict[str, Any]:
        with self._lock:
            self._workspaces.get(workspaceId)
            found = [
                self._namespace(*key)
                for key, _ in self._rules.items()
                if key[0] == workspaceId and key[1].startswith(name)
            ]
        return paged("ruleGroupsNamespaces", found, maxResults, nextToken)

    def delete_rule_groups_namespace(self, *, workspaceId: str, name: str, clientToken: str = "") -> None:
        with self._lock:
            self._rules.get((workspaceId, name)).begin("DELETING")

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

    def state(self) -> dict[str, Any]:
        with self._lock:
            return {name: shelf.dump() for name, shelf in self._shelves().items()}

    def restore(self, state: dict[str, Any]) -> None:
        with self._lock:
            for name, shelf in self._shelves().items():
                shelf.load(state[name])

    def _shelves(self) -> dict[str, RecordStore]:
        return {"workspaces": self._workspaces, "rules": self._rules, **self._parts}

    def _workspace(self, name: str) -> dict[str, Any]:
        record = self._workspaces.get(name)
        return {**copy.deepcopy(record.content), "status": {"statusCode": record.status(settled="ACTIVE")}}

    def _namespace(self, workspace: str, name: str) -> dict[str, Any]:
        record = self._rules.get((workspace, name))
        return {**copy.deepcopy(record.content), "status": {"statusCode": record.status(settled="ACTIVE")}}

    def _active(self, name: str) -> Record:
        record = self._workspaces.get(name)
        if record.status(settled="ACTIVE") != "ACTIVE":
            raise ServiceError("ConflictException", f"The workspace {name} is {record.doing}", 409)
        return record

    def _part(self, kind: str, workspace: str) -> dict[str, Any]:
        with self._lock:
            record = self._parts[kind].get(workspace)
            shown = {**copy.deepcopy(record.content), "status": {"statusCode": record.status(settled="ACTIVE")}}
            return {kind: shown}

    def _put_part(self, kind: str, workspace: str, content: dict[str, Any], *, fresh: bool = False) -> dict[str, Any]:
        with self._lock:
            self._active(workspace)
            shelf, moment = self._parts[kind], now()
            if not fresh:
                record = shelf.get(workspace)
                record.content |= {**content, "modifiedAt": moment}
                record.begin("UPDATING")
            elif shelf.find(workspace) is not None:
                raise ServiceError("ConflictException", f"The workspace {workspace} already has one", 409)
            else:
                record = shelf.add(workspace, {**content, "createdAt": moment, "modifiedAt": moment})
            return {"status": {"statusCode": record.status(settled="ACTIVE")}}

    def _drop_part(self, kind: str, workspace: str) -> None:
        with self._lock:
            self._parts[kind].get(workspace).begin("DELETING")

    def _tagged(self, arn: str) -> dict[str, str]:
        for shelf in (self._workspaces, self._rules):
            for record in shelf.values():
                if record.content["arn"] == arn:
                    tags: dict[str, str] = record.content["tags"]
                    return tags
        raise ServiceError("ResourceNotFoundException", f"Resource not found: {arn}", 404)

    def _arn(self, kind: str, path: str) -> str:
        return f"arn:aws:aps:{self._region}:{self._account}:{kind}/{path}"


def _yaml(data: bytes) -> bytes:
    try:
        parsed = yaml.safe_load(data)
    except yaml.YAMLError as error:
        raise ServiceError("ValidationException", f"Invalid configuration: {error}") from None
    if not isinstance(parsed, dict):
        raise ServiceError("ValidationException", "Invalid configuration: it is not a mapping")
    return data
