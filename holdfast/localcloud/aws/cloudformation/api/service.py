"""
API operations that change stacks.

Change sets are in `change_sets`, reading operations in `views` and `template_views`. Methods are named like the API's
operations and take and return its members.
"""

from collections.abc import Callable
from typing import Any, ClassVar

from holdfast.localcloud.aws.cloudformation.api import lookup
from holdfast.localcloud.aws.cloudformation.api.beginnings import StackStarter, check_updatable
from holdfast.localcloud.aws.cloudformation.api.change_sets import ChangeSets
from holdfast.localcloud.aws.cloudformation.api.lookup import invalid
from holdfast.localcloud.aws.cloudformation.api.targets import Targets
from holdfast.localcloud.aws.cloudformation.api.template_views import TemplateViews
from holdfast.localcloud.aws.cloudformation.api.views import Views
from holdfast.localcloud.aws.cloudformation.deployment import PAUSED, Engine, StackStore, Surroundings
from holdfast.localcloud.aws.cloudformation.resources.handlers import LocalMachine
from holdfast.localcloud.aws.cloudformation.template import TemplateError
from holdfast.localcloud.aws.common import Mishaps, ServiceError


class CloudFormation:
    PARTS: ClassVar[dict[str, type]] = {"change_sets": ChangeSets, "views": Views, "templates": TemplateViews}

    def __init__(
        self,
        *,
        client: Callable[[str], Any],
        account: str,
        region: str,
        skip: bool = False,
        mishaps: Mishaps | None = None,
        machine: LocalMachine | None = None,
    ) -> None:
        """
        Create a service without stacks.

        Args:
            client: Returns a thread-safe boto3 client for a service.
            skip: True if waits are skipped.
            mishaps: Default: none; deliberate failures.
            machine: Default: none, every resource is a record.
        """
        self._store = StackStore()
        surroundings = Surroundings(
            store=self._store,
            client=client,
            account=account,
            region=region,
            skip=skip,
            mishaps=mishaps or Mishaps(),
            machine=machine,
        )
        self._engine = Engine(surroundings=surroundings)
        self._targets = Targets(surroundings=surroundings)
        self._beginnings = StackStarter(surroundings=surroundings, engine=self._engine)
        self.change_sets = ChangeSets(store=self._store, targets=self._targets, beginnings=self._beginnings)
        self.views = Views(store=self._store)
        self.templates = TemplateViews(store=self._store)

    # -- life of the service

    @property
    def on_change(self) -> Callable[[], None]:
        return self._store.on_change

    @on_change.setter
    def on_change(self, call: Callable[[], None]) -> None:
        self._store.on_change = call

    def state(self) -> bytes:
        return self._store.dump()

    def restore(self, state: bytes) -> None:
        """Load ``state``; operations in progress fail as interrupted and are rolled back."""
        self._store.load(state)
        self._engine.resume()

    def close(self) -> None:
        """Stop working; operations in progress stay so in ``state``."""
        self._engine.close()

    def releases(self) -> list[dict[str, Any]]:
        with self._store.lock:
            return [
                {"StackName": stack.name, "LogicalResourceId": name, **entry.attributes}
                for stack in self._store.stacks.values()
                for name, entry in stack.resources.items()
                if entry.type == "Custom::HoldfastHelmRelease" and entry.attributes
            ]

    # -- stacks

    def create_stack(self, **request: Any) -> dict[str, Any]:
        with self._store.lock:
            if self._store.find(request["StackName"]) is not None:
                raise ServiceError("AlreadyExistsException", f"Stack [{request['StackName']}] already exists")
        target = self._targets.target(request, None)
        stack = self._beginnings.new_stack(request, target, status="", keep=False)
        try:
            self._targets.judge(stack, target)
        except TemplateError as error:
            raise invalid(str(error)) from None
        with self._store.lock:
            if self._store.find(request["StackName"]) is not None:
                raise ServiceError("AlreadyExistsException", f"Stack [{request['StackName']}] already exists")
            self._store.stacks[stack.id] = stack
            stack.on_failure = request.get("OnFailure", "ROLLBACK")
            stack.disable_rollback = bool(request.get("DisableRollback", False)) or stack.on_failure == "DO_NOTHING"
            operation = self._beginnings.deploy(stack, target, token=request.get("ClientRequestToken"), creating=True)
        return {"StackId": stack.id, "OperationId": operation}

    def update_stack(self, **request: Any) -> dict[str, Any]:
        stack = lookup.found(self._store, request["StackName"])
        check_updatable(stack)
        target = self._targets.target(request, stack)
        try:
            self._targets.judge(stack, target)
            changes = self._targets.changes(stack, target)
        except TemplateError as error:
            raise invalid(str(error)) from None
        if not changes and not self._targets.differs(stack, target):
            raise invalid("No updates are to be performed.")
        with self._store.lock:
            check_updatable(stack)
            stack.disable_rollback = bool(request.get("DisableRollback", False))
            stack.role = request.get("RoleARN") or stack.role
            operation = self._beginnings.deploy(stack, target, token=request.get("ClientRequestToken"), creating=False)
        return {"StackId": stack.id, "OperationId": operation}

    def delete_stack(self, **request: Any) -> dict[str, Any]:
        """DeleteStack: a missing one is no error."""
        retain = frozenset(request.get("RetainResources") or ())
        with self._store.lock:
            stack = self._store.find(request["StackName"])
            if stack is None or not stack.alive:
                return {}
            if stack.protected:
                raise invalid(f"Stack [{stack.name}] cannot be deleted while TerminationProtection is enabled")
            if stack.busy:
                if stack.status == "DELETE_IN_PROGRESS":
                    return {}
                raise invalid(f"Stack [{stack.name}] cannot be deleted while in status {stack.status}")
            if retain and stack.status != "DELETE_FAILED":
                raise invalid(
                    "Invalid operation on stack [" + stack.name + "]. RetainResources can be given only "
                    f"for a stack in DELETE_FAILED, it is in {stack.status}"
                )
            for output in stack.outputs:
                users = self._store.importers(output.get("ExportName", ""))
                if users:
                    raise invalid(f"Cannot delete export {output['ExportName']} as it is in use by {', '.join(users)}")
            stack.change_sets, stack.good = {}, None
            stack.status = "DELETE_IN_PROGRESS"
            self._engine.start(
                stack,
                lambda: self._engine.delete(stack, retain=retain),
                kind="DELETE_STACK",
                token=request.get("ClientRequestToken"),
            )
        return {}

    def rollback_stack(self, **request: Any) -> dict[str, Any]:
        """RollbackStack: undo what an operation with DisableRollback left."""
        with self._store.lock:
            stack = lookup.found(self._store, request["StackName"])
            if stack.status not in PAUSED:
                raise invalid(f"Stack [{stack.name}] is in [{stack.status}] state and can not be rolled back")
            keep = bool(request.get("RetainExceptOnCreate", False))
            stack.status = "ROLLBACK_IN_PROGRESS" if stack.good is None else "UPDATE_ROLLBACK_IN_PROGRESS"
            operation = self._engine.start(
                stack,
                lambda: self._engine.roll_back(stack, reason="User Initiated.", except_on_create=keep),
                kind="ROLLBACK",
                token=request.get("ClientRequestToken"),
            )
        return {"StackId": stack.id, "OperationId": operation}

    def continue_update_rollback(self, **request: Any) -> dict[str, Any]:
        with self._store.lock:
            stack = lookup.found(self._store, request["StackName"])
            if stack.status != "UPDATE_ROLLBACK_FAILED":
                raise invalid(
                    f"Stack [{stack.name}] is in [{stack.status}] state and can not continue a rollback; "
                    "only one in UPDATE_ROLLBACK_FAILED can"
                )
            skip = frozenset(request.get("ResourcesToSkip") or ())
            stack.status = "UPDATE_ROLLBACK_IN_PROGRESS"
            self._engine.start(
                stack,
                lambda: self._engine.roll_back(stack, reason="User Initiated.", skip=skip),
                kind="CONTINUE_ROLLBACK",
                token=request.get("ClientRequestToken"),
            )
        return {}

    def update_termination_protection(self, **request: Any) -> dict[str, Any]:
        with self._store.lock:
            stack = lookup.found(self._store, request["StackName"])
            stack.protected = bool(request["EnableTerminationProtection"])
            self._store.changed()
        return {"StackId": stack.id}
