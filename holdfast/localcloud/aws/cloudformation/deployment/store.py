"""
State of the embedded CloudFormation: stacks, their resources, events and change sets.

Plain dataclasses without locks, threads or clients, so that all of it pickles. Changes require ``StackStore.lock`` and
are reported by ``StackStore.changed``.
"""

import datetime
import pickle
import threading
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from holdfast.localcloud.aws.common import now

EVENT_SPACING = datetime.timedelta(milliseconds=1)
"""Clients order events by their millisecond; two of one stack never share one."""

STABLE = frozenset({"CREATE_COMPLETE", "UPDATE_COMPLETE", "UPDATE_ROLLBACK_COMPLETE"})
PAUSED = frozenset({"CREATE_FAILED", "UPDATE_FAILED"})


@dataclass(kw_only=True)
class Resource:
    logical_id: str
    type: str
    definition: dict[str, Any]
    needs: set[str]
    status: str = ""
    reason: str = ""
    physical_id: str = ""
    properties: dict[str, Any] = field(default_factory=dict)
    """Resolved, as the template has them."""
    sent: dict[str, Any] = field(default_factory=dict)
    """Resolved, with the tags that CloudFormation adds: what the handler was given."""
    attributes: dict[str, Any] = field(default_factory=dict)
    imported: bool = False
    """True if the resource was there before its stack."""
    changed: datetime.datetime = field(default_factory=now)


@dataclass(kw_only=True)
class DeploymentTarget:
    """Target of a deployment; a rollback goes to the last good one."""

    body: str
    document: dict[str, Any]
    parameters: dict[str, str]
    tags: dict[str, str]
    looked_up: dict[str, str] = field(default_factory=dict)
    """Values of the parameters that stand for SSM parameters."""
    capabilities: list[str] = field(default_factory=list)
    imports: frozenset[str] = frozenset()
    """Logical ids of resources that exist and are imported instead of created."""


@dataclass(kw_only=True)
class ChangeSet:
    id: str
    name: str
    type: str
    target: DeploymentTarget
    description: str | None
    created: datetime.datetime
    status: str = "CREATE_PENDING"
    reason: str = ""
    execution: str = "UNAVAILABLE"
    changes: list[dict[str, Any]] = field(default_factory=list)
    options: dict[str, Any] = field(default_factory=dict)
    problems: tuple[dict[str, str], ...] = ()
    """Findings of the validation before a deployment, for DescribeEvents."""


@dataclass(kw_only=True)
class Stack:
    id: str
    name: str
    target: DeploymentTarget
    status: str
    created: datetime.datetime
    reason: str = ""
    updated: datetime.datetime | None = None
    deleted: datetime.datetime | None = None
    change_set_id: str | None = None
    role: str | None = None
    disable_rollback: bool = False
    protected: bool = False
    operation: str = ""
    token: str | None = None
    operations: list[tuple[str, str]] = field(default_factory=list)
    on_failure: str = "ROLLBACK"
    resources: dict[str, Resource] = field(default_factory=dict)
    garbage: list[Resource] = field(default_factory=list)
    """Replaced or removed resources which are deleted when the new ones work."""
    good: "tuple[DeploymentTarget, dict[str, Resource]] | None" = None
    """Target and resources of the last stable state while an update is not over."""
    outputs: list[dict[str, str]] = field(default_factory=list)
    imports: set[str] = field(default_factory=set)
    events: list[dict[str, Any]] = field(default_factory=list)
    change_sets: dict[str, ChangeSet] = field(default_factory=dict)

    @property
    def busy(self) -> bool:
        return self.status.endswith("_IN_PROGRESS") and self.status != "REVIEW_IN_PROGRESS"

    @property
    def alive(self) -> bool:
        return self.status != "DELETE_COMPLETE"


class StackStore:
    """All stacks of one account and region, behind one lock."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.stacks: dict[str, Stack] = {}
        self.on_change: Callable[[], None] = lambda: None
        self._version = 0
        self._pickled: tuple[int, bytes] = (-1, b"")

    def changed(self) -> None:
        """Record a change; the caller holds the lock."""
        self._version += 1

    def find(self, name: str) -> Stack | None:
        """Find by id, deleted ones too; by name, living ones only."""
        with self.lock:
            if name in self.stacks:
                return self.stacks[name]
            return next((stack for stack in self.stacks.values() if stack.name == name and stack.alive), None)

    def exports(self) -> dict[str, tuple[str, str]]:
        """Return name to (value, id of the exporting stack)."""
        with self.lock:
            return {
                output["ExportName"]: (output["OutputValue"], stack.id)
                for stack in self.stacks.values()
                if stack.alive
                for output in stack.outputs
                if "ExportName" in output
            }

    def importers(self, export: str) -> list[str]:
        with self.lock:
            return [stack.name for stack in self.stacks.values() if stack.alive and export in stack.imports]

    def dump(self) -> bytes:
        with self.lock:
            if self._pickled[0] != self._version:
                self._pickled = (self._version, pickle.dumps(self.stacks))
            return self._pickled[1]

    def load(self, data: bytes) -> None:
        with self.lock:
            self.stacks = pickle.loads(data)  # noqa: S301 - a private file of this user
            self.changed()

    def event(
        self, stack: Stack, *, status: str, reason: str = "", resource: Resource | None = None, quiet: bool = False
    ) -> None:
        with self.lock:
            moment = now()
            if stack.events:
                moment = max(moment, stack.events[-1]["Timestamp"] + EVENT_SPACING)
            entry: dict[str, Any] = {
                "StackId": stack.id,
                "StackName": stack.name,
                "Timestamp": moment,
                "ResourceStatus": status,
                "OperationId": stack.operation,
            }
            if resource is None:
                stack.status, stack.reason = status, reason
                entry |= {
                    "LogicalResourceId": stack.name,
                    "PhysicalResourceId": stack.id,
                    "ResourceType": "AWS::CloudFormation::Stack",
                    "EventId": str(uuid.uuid4()),
                }
            else:
                resource.status, resource.reason, resource.changed = status, reason, moment
                entry |= {
                    "LogicalResourceId": resource.logical_id,
                    "PhysicalResourceId": resource.physical_id,
                    "ResourceType": resource.type,
                    "EventId": f"{resource.logical_id}-{status}-{moment.isoformat(timespec='milliseconds')}",
                }
            if reason:
                entry["ResourceStatusReason"] = reason
            if stack.token:
                entry["ClientRequestToken"] = stack.token
            stack.events.append(entry)
            self.changed()
        if not quiet:
            self.on_change()
