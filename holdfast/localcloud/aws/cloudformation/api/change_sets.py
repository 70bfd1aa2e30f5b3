from typing import Any

from holdfast.localcloud.aws.cloudformation.api import lookup
from holdfast.localcloud.aws.cloudformation.api.beginnings import StackStarter, check_updatable
from holdfast.localcloud.aws.cloudformation.api.lookup import invalid
from holdfast.localcloud.aws.cloudformation.api.targets import Targets
from holdfast.localcloud.aws.cloudformation.deployment import ChangeSet, Stack, StackStore
from holdfast.localcloud.aws.cloudformation.template import TemplateError
from holdfast.localcloud.aws.common import ServiceError, now

NO_CHANGES = "The submitted information didn't contain changes. Submit different information to create a change set."
INVALID = (
    "The following hook(s)/validation failed: [{}]. To troubleshoot Early Validation errors, use the DescribeEvents "
    "API for detailed failure information."
)
"""As reported with this very text in aws/aws-cdk-cli, issue 1000, and aws-cloudformation/rain, pull request 744."""
PROPERTIES, NAMES = "AWS::EarlyValidation::PropertyValidation", "AWS::EarlyValidation::ResourceExistenceCheck"


class ChangeSets:
    def __init__(self, *, store: StackStore, targets: Targets, beginnings: StackStarter) -> None:
        self._store, self._targets, self._beginnings = store, targets, beginnings

    def create_change_set(self, **request: Any) -> dict[str, Any]:
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
                stack = lookup.found(self._store, request["StackName"])
                check_updatable(stack)
        target = self._targets.target(request, stack if kind == "UPDATE" else None)
        with self._store.lock:
            stack = self._store.find(request["StackName"])
            if stack is None:
                stack = self._beginnings.new_stack(request, target, status="REVIEW_IN_PROGRESS")
                self._store.event(stack, status="REVIEW_IN_PROGRESS", reason="User Initiated", quiet=True)
            if request["ChangeSetName"] in stack.change_sets:
                raise ServiceError(
                    "AlreadyExistsException", f"ChangeSet {request['ChangeSetName']} already exists", 400
                )
            made = ChangeSet(
                id=self._beginnings.arn("changeSet", request["ChangeSetName"]),
                name=request["ChangeSetName"],
                type=kind,
                target=target,
                description=request.get("Description"),
                created=now(),
                options={"RoleARN": request.get("RoleARN"), "OnStackFailure": request.get("OnStackFailure")},
            )
        self._compute(stack, made, importing=bool(request.get("ImportExistingResources")))
        with self._store.lock:
            stack.change_sets[made.name] = made
            self._store.changed()
        return {"Id": made.id, "StackId": stack.id}

    def _compute(self, stack: Stack, made: ChangeSet, *, importing: bool) -> None:
        try:
            self._targets.judge(stack, made.target)
            clashes = self._targets.names(stack, made.target, importing=importing)
            made.changes = self._targets.changes(stack, made.target)
        except TemplateError as error:
            made.status, made.reason = "FAILED", str(error)
            return
        wrong = self._targets.problems(stack, made.target)
        made.problems = (*wrong, *clashes)
        if made.problems:
            hooks = [hook for hook, found in ((PROPERTIES, wrong), (NAMES, clashes)) if found]
            made.status, made.reason = "FAILED", INVALID.format(", ".join(hooks))
            return
        if made.type == "UPDATE" and not made.changes and not self._targets.differs(stack, made.target):
            made.status, made.reason = "FAILED", NO_CHANGES
            return
        made.status, made.execution = "CREATE_COMPLETE", "AVAILABLE"

    def execute_change_set(self, **request: Any) -> dict[str, Any]:
        with self._store.lock:
            stack, made = lookup.change_set(self._store, request["ChangeSetName"], request.get("StackName"))
            if made.execution != "AVAILABLE":
                raise ServiceError(
                    "InvalidChangeSetStatus",
                    f"ChangeSet [{made.id}] cannot be executed in its current status of [{made.status}]",
                )
            if made.type == "UPDATE":
                check_updatable(stack)
            stack.change_sets = {}
            stack.change_set_id = made.id
            stack.disable_rollback = bool(request.get("DisableRollback", False))
            stack.on_failure = made.options.get("OnStackFailure") or "ROLLBACK"
            stack.role = made.options.get("RoleARN") or stack.role
            self._beginnings.deploy(
                stack,
                made.target,
                token=request.get("ClientRequestToken"),
                creating=made.type == "CREATE",
                retain_except_on_create=bool(request.get("RetainExceptOnCreate", False)),
            )
        return {}

    def delete_change_set(self, **request: Any) -> dict[str, Any]:
        """DeleteChangeSet: a missing one is no error."""
        with self._store.lock:
            try:
                stack, made = lookup.change_set(self._store, request["ChangeSetName"], request.get("StackName"))
            except ServiceError:
                return {}
            del stack.change_sets[made.name]
            self._store.changed()
        return {}
