"""The API operations that only read stacks, their events and their resources."""

import json
import uuid
from collections.abc import Sequence
from typing import Any

from holdfast.localcloud.aws.cloudformation.deployment import ChangeSet, Resource, Stack, Surroundings
from holdfast.localcloud.aws.cloudformation.template import described
from holdfast.localcloud.aws.common import ServiceError

PAGE = 100
NO_DRIFT = {"StackDriftStatus": "NOT_CHECKED"}
NO_RESOURCE_DRIFT = {"StackResourceDriftStatus": "NOT_CHECKED"}


def paged(items: Sequence[Any], token: str | None) -> tuple[list[Any], dict[str, str]]:
    start = int(token) if token and token.isdigit() else 0
    more = {"NextToken": str(start + PAGE)} if start + PAGE < len(items) else {}
    return list(items[start : start + PAGE]), more


def present(entry: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in entry.items() if value not in (None, "")}


class Views:
    """What can be asked. Every method takes the lock, so an answer is one moment's truth."""

    def __init__(self, *, surroundings: Surroundings) -> None:
        self._surroundings, self._stacks = surroundings, surroundings.store

    def describe_stacks(self, **request: Any) -> dict[str, Any]:
        """DescribeStacks."""
        with self._stacks.lock:
            if request.get("StackName"):
                return {"Stacks": [self._stack(self._found(request["StackName"]))]}
            alive = [self._stack(stack) for stack in self._stacks.stacks.values() if stack.alive]
        page, more = paged(alive, request.get("NextToken"))
        return {"Stacks": page, **more}

    def list_stacks(self, **request: Any) -> dict[str, Any]:
        """ListStacks."""
        wanted = request.get("StackStatusFilter")
        with self._stacks.lock:
            found = [
                present(
                    {
                        "StackId": stack.id,
                        "StackName": stack.name,
                        "CreationTime": stack.created,
                        "TemplateDescription": stack.target.document.get("Description"),
                        "LastUpdatedTime": stack.updated,
                        "DeletionTime": stack.deleted,
                        "StackStatus": stack.status,
                        "StackStatusReason": stack.reason,
                        "DriftInformation": NO_DRIFT,
                    }
                )
                for stack in reversed(self._stacks.stacks.values())
                if not wanted or stack.status in wanted
            ]
        page, more = paged(found, request.get("NextToken"))
        return {"StackSummaries": page, **more}

    def describe_stack_events(self, **request: Any) -> dict[str, Any]:
        """DescribeStackEvents: newest first."""
        with self._stacks.lock:
            events = list(reversed(self._found(request["StackName"]).events))
        page, more = paged(events, request.get("NextToken"))
        return {"StackEvents": [present(event) for event in page], **more}

    def describe_events(self, **request: Any) -> dict[str, Any]:
        """DescribeEvents: the same events with the operation they belong to."""
        with self._stacks.lock:
            if request.get("ChangeSetName"):
                stack, made = self._change_set(request["ChangeSetName"], request.get("StackName"))
                return {"OperationEvents": [_validation_event(stack, made, one) for one in made.problems]}
            stack = self._named(request)
            kinds = {operation: kind for kind, operation in stack.operations}
            wanted = request.get("OperationId")
            events = [event for event in reversed(stack.events) if not wanted or event["OperationId"] == wanted]
        if (request.get("Filters") or {}).get("FailedEvents"):
            events = [event for event in events if event["ResourceStatus"].endswith("_FAILED")]
        page, more = paged(events, request.get("NextToken"))
        shown = [
            present(
                {key: value for key, value in event.items() if key != "StackName"}
                | {"EventType": "STACK_EVENT", "OperationType": kinds.get(event["OperationId"])}
            )
            for event in page
        ]
        return {"OperationEvents": shown, **more}

    def describe_stack_resources(self, **request: Any) -> dict[str, Any]:
        """DescribeStackResources."""
        logical_id, physical_id = request.get("LogicalResourceId"), request.get("PhysicalResourceId")
        with self._stacks.lock:
            name = request.get("StackName")
            stack = self._found(name) if name else self._owner(physical_id)
            return {
                "StackResources": [
                    {
                        **self._resource(entry),
                        "StackName": stack.name,
                        "StackId": stack.id,
                        "Timestamp": entry.changed,
                        "DriftInformation": NO_RESOURCE_DRIFT,
                    }
                    for entry in stack.resources.values()
                    if logical_id in (None, entry.logical_id) and physical_id in (None, entry.physical_id)
                ]
            }

    def describe_stack_resource(self, **request: Any) -> dict[str, Any]:
        """DescribeStackResource."""
        with self._stacks.lock:
            stack = self._found(request["StackName"])
            entry = stack.resources.get(request["LogicalResourceId"])
            if entry is None:
                raise ServiceError(
                    "ValidationError", f"Resource {request['LogicalResourceId']} does not exist for stack {stack.name}"
                )
            metadata = entry.definition.get("Metadata")
            detail = {
                **self._resource(entry),
                "StackName": stack.name,
                "StackId": stack.id,
                "LastUpdatedTimestamp": entry.changed,
                "DriftInformation": NO_RESOURCE_DRIFT,
            }
            return {"StackResourceDetail": detail | ({"Metadata": json.dumps(metadata)} if metadata else {})}

    def list_stack_resources(self, **request: Any) -> dict[str, Any]:
        """ListStackResources."""
        with self._stacks.lock:
            found = [
                {**self._resource(entry), "LastUpdatedTimestamp": entry.changed, "DriftInformation": NO_RESOURCE_DRIFT}
                for entry in self._found(request["StackName"]).resources.values()
            ]
        page, more = paged(found, request.get("NextToken"))
        return {"StackResourceSummaries": page, **more}

    def _found(self, name: str) -> Stack:
        stack = self._stacks.find(name)
        if stack is None:
            raise ServiceError("ValidationError", f"Stack with id {name} does not exist")
        return stack

    def _named(self, request: dict[str, Any]) -> Stack:
        if not request.get("StackName"):
            raise ServiceError("ValidationError", "StackName must be given")
        return self._found(request["StackName"])

    def _owner(self, physical_id: str | None) -> Stack:
        for stack in self._stacks.stacks.values():
            if physical_id and any(entry.physical_id == physical_id for entry in stack.resources.values()):
                return stack
        raise ServiceError("ValidationError", f"Stack for {physical_id} does not exist")

    def _change_set(self, name: str, stack_name: str | None) -> tuple[Stack, ChangeSet]:
        stacks = [self._found(stack_name)] if stack_name else list(self._stacks.stacks.values())
        for stack in stacks:
            for made in stack.change_sets.values():
                if name == made.id or (stack_name and name == made.name):
                    return stack, made
        raise ServiceError("ChangeSetNotFound", f"ChangeSet [{name}] does not exist", 404)

    @staticmethod
    def _resource(entry: Resource) -> dict[str, Any]:
        return present(
            {
                "LogicalResourceId": entry.logical_id,
                "PhysicalResourceId": entry.physical_id,
                "ResourceType": entry.type,
                "ResourceStatus": entry.status,
                "ResourceStatusReason": entry.reason,
            }
        )

    @staticmethod
    def _stack(stack: Stack) -> dict[str, Any]:
        target = stack.target
        operations = [{"OperationType": kind, "OperationId": operation} for kind, operation in stack.operations[-1:]]
        return present(
            {
                "StackId": stack.id,
                "StackName": stack.name,
                "ChangeSetId": stack.change_set_id,
                "Description": target.document.get("Description"),
                "CreationTime": stack.created,
                "Parameters": described(target.document, target.parameters, target.looked_up),
                "DeletionTime": stack.deleted,
                "LastUpdatedTime": stack.updated,
                "StackStatus": stack.status,
                "StackStatusReason": stack.reason,
                "DisableRollback": stack.disable_rollback,
                "Capabilities": target.capabilities,
                "Outputs": [dict(output) for output in stack.outputs],
                "RoleARN": stack.role,
                "Tags": tag_list(target.tags),
                "EnableTerminationProtection": stack.protected,
                "NotificationARNs": [],
                "RollbackConfiguration": {},
                "DriftInformation": NO_DRIFT,
                "LastOperations": operations,
            }
        )


def _validation_event(stack: Stack, made: ChangeSet, problem: dict[str, str]) -> dict[str, Any]:
    identity = made.id.rpartition("/")[2]
    return {
        "EventId": str(
            uuid.uuid5(uuid.UUID(identity), problem["LogicalResourceId"] + problem["ValidationStatusReason"])
        ),
        "StackId": stack.id,
        "OperationId": identity,
        "OperationType": "CREATE_CHANGESET",
        "EventType": "VALIDATION_ERROR",
        "PhysicalResourceId": "",
        "Timestamp": made.created,
        "ValidationFailureMode": "FAIL",
        "ValidationName": "PROPERTY_VALIDATION",
        "ValidationStatus": "FAILED",
        **problem,
    }


def tag_list(tags: dict[str, str]) -> list[dict[str, str]]:
    return [{"Key": key, "Value": value} for key, value in tags.items()]
