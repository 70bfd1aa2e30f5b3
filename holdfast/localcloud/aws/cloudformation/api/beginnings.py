"""Creation of stacks and start of their deployments."""

import copy
import re
import uuid
from typing import Any

from holdfast.localcloud.aws.cloudformation.api.lookup import invalid
from holdfast.localcloud.aws.cloudformation.deployment import (
    PAUSED,
    STABLE,
    DeploymentTarget,
    Engine,
    Stack,
    Surroundings,
)
from holdfast.localcloud.aws.common import now

UPDATABLE = STABLE | PAUSED


def check_updatable(stack: Stack) -> None:
    if stack.status not in UPDATABLE:
        raise invalid(f"Stack:{stack.id} is in {stack.status} state and can not be updated.")


class StackStarter:
    """Create stacks and start their deployments; callers hold the store's lock."""

    def __init__(self, *, surroundings: Surroundings, engine: Engine) -> None:
        self._surroundings, self._engine = surroundings, engine
        self._store = surroundings.store

    def deploy(
        self,
        stack: Stack,
        target: DeploymentTarget,
        *,
        token: str | None,
        creating: bool,
        retain_except_on_create: bool = False,
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

    def new_stack(self, request: dict[str, Any], target: DeploymentTarget, *, status: str, keep: bool = True) -> Stack:
        name = request["StackName"]
        if not re.fullmatch(r"[a-zA-Z][-a-zA-Z0-9]{0,127}", name):
            raise invalid(
                f"1 validation error detected: Value '{name}' at 'stackName' failed to satisfy constraint: "
                "Member must satisfy regular expression pattern: [a-zA-Z][-a-zA-Z0-9]*"
            )
        stack = Stack(
            id=self.arn("stack", name),
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

    def arn(self, kind: str, name: str) -> str:
        place = self._surroundings
        return f"arn:aws:cloudformation:{place.region}:{place.account}:{kind}/{name}/{uuid.uuid4()}"
