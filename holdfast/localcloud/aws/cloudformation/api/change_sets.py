"""The API operations on change sets, and how a deployment of a stack begins."""

import copy
import re
import uuid
from typing import Any

from holdfast.localcloud.aws.cloudformation.api.targets import Targets, invalid
from holdfast.localcloud.aws.cloudformation.deployment import PAUSED, STABLE, ChangeSet, Engine, Stack, Store, Target
from holdfast.localcloud.aws.cloudformation.template import TemplateError
from holdfast.localcloud.aws.common import ServiceError, now

NO_CHANGES = "The submitted information didn't contain changes. Submit different information to create a change set."
INVALID = (
    "The following hook(s)/validation failed: [AWS::EarlyValidation::PropertyValidation]. To troubleshoot Early "
    "Validation errors, use the DescribeEvents API for detailed failure information."
)
"""As reported with this very text in aws/aws-cdk-cli, issue 1000."""
UPDATABLE = STABLE | PAUSED


class ChangeSets(Targets):
    """Changes that are computed first and executed later; `CloudFormation` owns the attributes."""

    _store: Store
    _engine: Engine

    def create_change_set(self, **request: Any) -> dict[str, Any]:
        """CreateChangeSet: the change is computed before the answer, so a describe sees it at once."""
        kind = request.get("ChangeSetType", "UPDATE")
        if kind not in ("CREATE", "UPDATE"):
            raise invalid(f"ChangeSetType {kind} is not supported by the embedded AWS; use CREATE or UPDATE")
        with self._store.lock:
            stack = self._store.find(request["StackName"])
            if kind == "CREATE" and stack is not None and stack.status != "REVIEW_IN_PROGRESS":
                raise invalid(
                    f"Stack [{stack.name}] already exists and cannot be created again with the changeSet "
                    f"[{request['ChangeSetName']}]."
                )
            if kind == "UPDATE":
                stack = self._found(request["StackName"])
                self._may_update(stack)
        target = self._target(request, stack if kind == "UPDATE" else None)
        with self._store.lock:
            stack = self._store.find(request["StackName"])
            if stack is None:
                stack = self._new_stack(request, target, status="REVIEW_IN_PROGRESS")
                self._store.event(stack, status="REVIEW_IN_PROGRESS", reason="User Initiated", quiet=True)
            if request["ChangeSetName"] in stack.change_sets:
                raise ServiceError(
                    "AlreadyExistsException", f"ChangeSet {request['ChangeSetName']} already exists", 400
                )
            made = ChangeSet(
                id=self._arn("changeSet", request["ChangeSetName"]),
                name=request["ChangeSetName"],
                type=kind,
                target=target,
                description=request.get("Description"),
                created=now(),
                options={"RoleARN": request.get("RoleARN"), "OnStackFailure": request.get("OnStackFailure")},
            )
        self._compute(stack, made)
        with self._store.lock:
            stack.change_sets[made.name] = made
            self._store.changed()
        return {"Id": made.id, "StackId": stack.id}

    def _compute(self, stack: Stack, made: ChangeSet) -> None:
        try:
            self._judge(stack, made.target)
            made.changes = self._changes(stack, made.target)
        except TemplateError as error:
            made.status, made.reason = "FAILED", str(error)
            return
        made.problems = self._problems(stack, made.target)
        if made.problems:
            made.status, made.reason = "FAILED", INVALID
            return
        if made.type == "UPDATE" and not made.changes and not self._differs(stack, made.target):
            made.status, made.reason = "FAILED", NO_CHANGES
            return
        made.status, made.execution = "CREATE_COMPLETE", "AVAILABLE"

    def execute_change_set(self, **request: Any) -> dict[str, Any]:
        """ExecuteChangeSet."""
        with self._store.lock:
            stack, made = self._change_set(request["ChangeSetName"], request.get("StackName"))
            if made.execution != "AVAILABLE":
                raise ServiceError(
                    "InvalidChangeSetStatus",
                    f"ChangeSet [{made.id}] cannot be executed in its current status of [{made.status}]",
                )
            if made.type == "UPDATE":
                self._may_update(stack)
            stack.change_sets = {}
            stack.change_set_id = made.id
            stack.disable_rollback = bool(request.get("DisableRollback", False))
            stack.on_failure = made.options.get("OnStackFailure") or "ROLLBACK"
            stack.role = made.options.get("RoleARN") or stack.role
            self._deploy(
                stack,
                made.target,
                token=request.get("ClientRequestToken"),
                creating=made.type == "CREATE",
                retain_except_on_create=bool(request.get("RetainExceptOnCreate", False)),
            )
        return {}

    def delete_change_set(self, **request: Any) -> dict[str, Any]:
        """DeleteChangeSet: one that is not there is no error."""
        with self._store.lock:
            try:
                stack, made = self._change_set(request["ChangeSetName"], request.get("StackName"))
            except ServiceError:
                return {}
            del stack.change_sets[made.name]
            self._store.changed()
        return {}

    def _deploy(
        self, stack: Stack, target: Target, *, token: str | None, creating: bool, retain_except_on_create: bool = False
    ) -> str:
        if stack.status in STABLE:
            stack.good = (stack.target, copy.deepcopy(stack.resources))
        if creating:
            stack.target = target
        else:
            stack.updated = now()
        verb = "CREATE" if creating else "UPDATE"
        stack.status = f"{verb}_IN_PROGRESS"

        def work() -> None:
            self._store.event(stack, status=f"{verb}_IN_PROGRESS", reason="User Initiated")
            self._engine.deploy(stack, target, retain_except_on_create=retain_except_on_create)

        return self._engine.start(stack, work, kind=f"{verb}_STACK", token=token)

    def _new_stack(self, request: dict[str, Any], target: Target, *, status: str, keep: bool = True) -> Stack:
        name = request["StackName"]
        if not re.fullmatch(r"[a-zA-Z][-a-zA-Z0-9]{0,127}", name):
            raise invalid(
                f"1 validation error detected: Value '{name}' at 'stackName' failed to satisfy constraint: "
                "Member must satisfy regular expression pattern: [a-zA-Z][-a-zA-Z0-9]*"
            )
        stack = Stack(
            id=self._arn("stack", name),
            name=name,
            target=target,
            status=status,
            created=now(),
            role=request.get("RoleARN"),
            protected=bool(request.get("EnableTerminationProtection")),
        )
        if keep:
            self._store.stacks[stack.id] = stack
        return stack

    def _arn(self, kind: str, name: str) -> str:
        place = self._surroundings
        return f"arn:aws:cloudformation:{place.region}:{place.account}:{kind}/{name}/{uuid.uuid4()}"

    def _may_update(self, stack: Stack) -> None:
        if stack.status not in UPDATABLE:
            raise invalid(f"Stack:{stack.id} is in {stack.status} state and can not be updated.")
