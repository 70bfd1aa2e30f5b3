"""
The API operations that change stacks: which requests are allowed, and what they start.

Reading operations are in ``_views``. Methods are named like the API's operations and take and return its members.
"""

import copy
import re
import urllib.parse
import uuid
from collections.abc import Callable
from typing import Any

from botocore.exceptions import ClientError

from holdfast.localcloud.aws._errors import ServiceError
from holdfast.localcloud.aws.cloudformation import _plan
from holdfast.localcloud.aws.cloudformation._engine import Engine
from holdfast.localcloud.aws.cloudformation._intrinsics import failed_rules
from holdfast.localcloud.aws.cloudformation._parameters import chosen, resolved
from holdfast.localcloud.aws.cloudformation._scope import Surroundings
from holdfast.localcloud.aws.cloudformation._store import (
    PAUSED,
    STABLE,
    ChangeSet,
    Stack,
    Store,
    Target,
    now,
)
from holdfast.localcloud.aws.cloudformation._template import (
    TemplateError,
    capabilities,
    check,
    parse,
)
from holdfast.localcloud.aws.cloudformation._views import Views
from holdfast.localcloud.aws.cloudformation._worker import system_tags
from holdfast.localcloud.aws.cloudformation.resources import _schema, supports

NO_CHANGES = "The submitted information didn't contain changes. Submit different information to create a change set."
UPDATABLE = STABLE | PAUSED


def invalid(message: str) -> ServiceError:
    """The error for nearly everything that CloudFormation refuses."""
    return ServiceError("ValidationError", message)


class CloudFormation(Views):
    """The embedded CloudFormation of one account and region."""

    def __init__(self, *, client: Callable[[str], Any], account: str, region: str) -> None:
        """``client`` gives a thread-safe boto3 client for a service; everything is made through these."""
        self._store = Store()
        surroundings = Surroundings(store=self._store, client=client, account=account, region=region)
        super().__init__(surroundings=surroundings)
        self._engine = Engine(surroundings=surroundings)

    # -- life of the service

    @property
    def on_change(self) -> Callable[[], None]:
        """Called after a change that no request made."""
        return self._store.on_change

    @on_change.setter
    def on_change(self, call: Callable[[], None]) -> None:
        self._store.on_change = call

    def state(self) -> bytes:
        """Everything to keep across restarts."""
        return self._store.dump()

    def restore(self, state: bytes) -> None:
        """Take over ``state``; operations that were in progress fail as interrupted, and are rolled back."""
        self._store.load(state)
        self._engine.resume()

    def close(self) -> None:
        """Stop working; operations in progress stay so in ``state``."""
        self._engine.close()

    # -- change sets

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

    # -- stacks

    def create_stack(self, **request: Any) -> dict[str, Any]:
        """CreateStack."""
        with self._store.lock:
            if self._store.find(request["StackName"]) is not None:
                raise ServiceError("AlreadyExistsException", f"Stack [{request['StackName']}] already exists")
        target = self._target(request, None)
        stack = self._new_stack(request, target, status="", keep=False)
        try:
            self._judge(stack, target)
        except TemplateError as error:
            raise invalid(str(error)) from None
        with self._store.lock:
            if self._store.find(request["StackName"]) is not None:
                raise ServiceError("AlreadyExistsException", f"Stack [{request['StackName']}] already exists")
            self._store.stacks[stack.id] = stack
            stack.on_failure = request.get("OnFailure", "ROLLBACK")
            stack.disable_rollback = bool(request.get("DisableRollback", False)) or stack.on_failure == "DO_NOTHING"
            operation = self._deploy(stack, target, token=request.get("ClientRequestToken"), creating=True)
        return {"StackId": stack.id, "OperationId": operation}

    def update_stack(self, **request: Any) -> dict[str, Any]:
        """UpdateStack."""
        stack = self._found(request["StackName"])
        self._may_update(stack)
        target = self._target(request, stack)
        try:
            self._judge(stack, target)
            changes = self._changes(stack, target)
        except TemplateError as error:
            raise invalid(str(error)) from None
        if not changes and not self._differs(stack, target):
            raise invalid("No updates are to be performed.")
        with self._store.lock:
            self._may_update(stack)
            stack.disable_rollback = bool(request.get("DisableRollback", False))
            stack.role = request.get("RoleARN") or stack.role
            operation = self._deploy(stack, target, token=request.get("ClientRequestToken"), creating=False)
        return {"StackId": stack.id, "OperationId": operation}

    def delete_stack(self, **request: Any) -> dict[str, Any]:
        """DeleteStack: one that is not there is no error."""
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
        """RollbackStack: what an operation with DisableRollback left is taken back."""
        with self._store.lock:
            stack = self._found(request["StackName"])
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
        """ContinueUpdateRollback."""
        with self._store.lock:
            stack = self._found(request["StackName"])
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

    def cancel_update_stack(self, **request: Any) -> dict[str, Any]:
        """CancelUpdateStack."""
        with self._store.lock:
            stack = self._found(request["StackName"])
            if stack.status != "UPDATE_IN_PROGRESS":
                raise invalid("CancelUpdateStack cannot be called from current stack status")
            self._engine.cancel(stack)
        return {}

    def update_termination_protection(self, **request: Any) -> dict[str, Any]:
        """UpdateTerminationProtection."""
        with self._store.lock:
            stack = self._found(request["StackName"])
            stack.protected = bool(request["EnableTerminationProtection"])
            self._store.changed()
        return {"StackId": stack.id}

    # -- parts

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

    def _target(self, request: dict[str, Any], stack: Stack | None) -> Target:
        """What the request aims at. Refuses templates and parameters that cannot be."""
        previous = stack.target if stack is not None else None
        if request.get("UsePreviousTemplate"):
            if previous is None:
                raise invalid("UsePreviousTemplate is only possible for a stack that exists")
            body = previous.body
        else:
            body = self._body(request)
        try:
            document = parse(body)
            values = chosen(document, request.get("Parameters") or [], previous.parameters if previous else None)
            looked_up = resolved(document, values, self._surroundings.ssm_value)
            check(document, supports=supports)
        except TemplateError as error:
            raise invalid(str(error)) from None
        needed, given = capabilities(document), set(request.get("Capabilities") or ())
        if needed and not given & {"CAPABILITY_NAMED_IAM", *needed}:
            raise ServiceError("InsufficientCapabilitiesException", f"Requires capabilities : [{', '.join(needed)}]")
        tags = request.get("Tags")
        if tags is None and previous is not None:
            pairs = dict(previous.tags)
        else:
            pairs = {tag["Key"]: tag["Value"] for tag in tags or []}
        return Target(
            body=body, document=document, parameters=values, looked_up=looked_up, tags=pairs, capabilities=sorted(given)
        )

    def _body(self, request: dict[str, Any]) -> str:
        if request.get("TemplateBody"):
            return str(request["TemplateBody"])
        url = request.get("TemplateURL")
        if not url:
            raise invalid("Either Template URL or Template Body must be specified.")
        parts = urllib.parse.urlparse(url)
        bucket, _, key = urllib.parse.unquote(parts.path).lstrip("/").partition("/")
        virtual = re.fullmatch(r"(.+?)\.s3[.-].*", parts.hostname or "")
        if virtual:
            bucket, key = virtual[1], urllib.parse.unquote(parts.path).lstrip("/")
        try:
            stored = self._surroundings.client("s3").get_object(Bucket=bucket, Key=key)
        except ClientError as error:
            raise invalid(f"S3 error: {error.response['Error'].get('Message', '')} ({url})") from None
        return str(stored["Body"].read().decode())

    def _judge(self, stack: Stack, target: Target) -> None:
        """Rules, conditions and attribute names: what can be known before anything is made."""
        scope = self._surroundings.scope(stack, target, stack.resources, foreseeing=True)
        failures = failed_rules(target.document.get("Rules", {}), scope)
        if failures:
            raise TemplateError("Template validation error: " + "; ".join(failures))
        for name, key in _plan.attributes_used(target.document):
            kind = target.document["Resources"][name]["Type"]
            known = _schema.attributes(kind)
            if known and key not in known and not any(entry.startswith(f"{key}.") for entry in known):
                raise TemplateError(
                    f"Template error: resource {name} does not support attribute type {key} in Fn::GetAtt"
                )
        _plan.wanted(target.document, scope)

    def _changes(self, stack: Stack, target: Target) -> list[dict[str, Any]]:
        with self._store.lock:
            current = dict(stack.resources)
        fresh: frozenset[str] = frozenset()
        while True:  # a replacement makes values unknown, which may replace more
            scope = self._surroundings.scope(stack, target, current, foreseeing=True, fresh=fresh)
            changes, replaced = [], set()
            wanted = _plan.wanted(target.document, scope)
            for name, definition in wanted.items():
                kind = definition["Type"]
                properties = _schema.prepared(kind, scope.resolve(definition.get("Properties", {})) or {})
                sent = _plan.with_tags(kind, properties, target.tags, system_tags(stack, name))
                found = _plan.change(current.get(name), definition, name, properties, sent)
                if found is not None:
                    changes.append(found)
                    if found["ResourceChange"].get("Replacement") == "True":
                        replaced.add(name)
            if replaced <= fresh:
                break
            fresh |= replaced
        return changes + [_plan.removal(entry) for name, entry in current.items() if name not in wanted]

    def _differs(self, stack: Stack, target: Target) -> bool:
        """Whether anything but resources changes: outputs, tags, or a failed state that is to be left."""
        old = stack.target
        if stack.status in PAUSED or old.tags != target.tags:
            return True
        outputs = old.document.get("Outputs", {}), target.document.get("Outputs", {})
        if outputs[0] != outputs[1]:
            return True
        used = _plan.parameters_of_outputs(target.document)
        return any(old.parameters.get(name) != target.parameters.get(name) for name in used)
