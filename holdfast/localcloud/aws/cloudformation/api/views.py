"""API operations that only read stacks, their events and their resources."""

import json
import uuid
from typing import Any

from holdfast.localcloud.aws.cloudformation.api import lookup
from holdfast.localcloud.aws.cloudformation.api.lookup import paged, present
from holdfast.localcloud.aws.cloudformation.deployment import ChangeSet, Resource, Stack, StackStore
from holdfast.localcloud.aws.cloudformation.template import described
from holdfast.localcloud.aws.common import ServiceError, tag_list

NO_DRIFT = {"StackDriftStatus": "NOT_CHECKED"}
NO_RESOURCE_DRIFT = {"StackResourceDriftStatus": "NOT_CHECKED"}


class Views:
    """Reading operations on stacks. Each holds the lock, so an answer is consistent."""

    def __init__(self, *, store: StackStore) -> None:
        self._store = store

    def describe_stacks(self, **request: Any) -> dict[str, Any]:
        with self._store.lock:
            if request.get("StackName"):
                return {"Stacks": [self._stack(lookup.found(self._store, request["StackName"]))]}
            alive = [self._stack(stack) for stack in self._store.stacks.values() if stack.alive]
        page, more = paged(alive, request.get("NextToken"))
        return {"Stacks": page, **more}

    def list_stacks(self, **request: Any) -> dict[str, Any]:
        desired = request.get("StackStatusFilter")
        with self._store.lock:
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
                for stack in reversed(self._store.stacks.values())
                if not desired or stack.status in desired
            ]
        page, more = paged(found, request.get("NextToken"))
        return {"StackSummaries": page, **more}

    def describe_stack_events(self, **request: Any) -> dict[str, Any]:
        """DescribeStackEvents: newest first."""
        with self._store.lock:
            events = list(reversed(lookup.found(self._store, request["StackName"]).events))
        page, more = paged(events, request.get("NextToken"))
        return {"StackEvents": [present(event) for event in page], **more}

    def describe_events(self, **request: Any) -> dict[str, Any]:
        with self._store.lock:
            if request.get("ChangeSetName"):
                stack, made = lookup.change_set(self._store, request["ChangeSetName"], request.get("StackName"))
                return {"OperationEvents": [_validation_event(stack, made, one) for one in made.problems]}
            stack = lookup.named(self._store, request)
            kinds = {operation: kind for kind, operation in stack.operations}
            desired = request.get("OperationId")
            events = [event for event in reversed(stack.events) if not desired or event["OperationId"] == desired]
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
        logical_id, physical_id = request.get("LogicalResourceId"), request.get("PhysicalResourceId")
        with self._store.lock:
            name = request.get("StackName")
            stack = lookup.found(self._store, name) if name else lookup.owner(self._store, physical_id)
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
        with self._store.lock:
            stack = lookup.found(self._store, request["StackName"])
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
        with self._store.lock:
            found = [
                {**self._resource(entry), "LastUpdatedTimestamp": entry.changed, "DriftInformation": NO_RESOURCE_DRIFT}
                for entry in lookup.found(self._store, request["StackName"]).resources.values()
            ]
        page, more = paged(found, request.get("NextToken"))
        return {"StackResourceSummaries": page, **more}

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
