"""Work on one resource: call its handler and record the events. Called from many threads at once."""

import copy
import logging
from collections.abc import Mapping
from typing import Any

from botocore.exceptions import ClientError

from holdfast.localcloud.aws.cloudformation import registry
from holdfast.localcloud.aws.cloudformation.deployment import plan
from holdfast.localcloud.aws.cloudformation.deployment.store import DeploymentTarget, Resource, Stack
from holdfast.localcloud.aws.cloudformation.deployment.surroundings import Surroundings
from holdfast.localcloud.aws.cloudformation.registry import prepared
from holdfast.localcloud.aws.cloudformation.resources import handler_for
from holdfast.localcloud.aws.cloudformation.resources.handlers import Made, ResourceContext, ResourceError, Stopped
from holdfast.localcloud.aws.cloudformation.template import TemplateError, TemplateScope
from holdfast.localcloud.aws.cloudformation.timing import Cancelled
from holdfast.localcloud.aws.common import acting_for, root_of

log = logging.getLogger(__name__)


class ResourceWorker:
    def __init__(self, *, surroundings: Surroundings) -> None:
        self.surroundings, self.store = surroundings, surroundings.store

    def converge(
        self,
        stack: Stack,
        name: str,
        definition: dict[str, Any],
        needs: set[str],
        scope: TemplateScope,
        target: DeploymentTarget,
        switch: Any,
    ) -> None:
        kind = definition["Type"]
        with self.store.lock:
            current = stack.resources.get(name)
        desired = Resource(logical_id=name, type=kind, definition=definition, needs=needs)
        verb = "CREATE" if current is None or not current.physical_id else "UPDATE"
        try:
            properties = prepared(kind, scope.resolve(definition.get("Properties", {})) or {})
            sent = plan.with_tags(kind, properties, target.tags, system_tags(stack, name))
            decided = plan.step(current, kind, properties, sent)
            if decided is plan.ResourceStep.NOTHING:
                assert current is not None
                with self.store.lock:
                    current.definition, current.needs, current.properties = definition, needs, properties
                return
            clash = plan.name_clash(current, properties) if decided is plan.ResourceStep.REPLACE and current else ""
            if clash and current is not None and current.type == kind and current.status != "CREATE_FAILED":
                raise ResourceError(  # noqa: TRY301
                    "CloudFormation cannot update a stack when a custom-named resource requires "
                    f"replacing. Rename {clash} and update the stack again."
                )
            found = registry.violations(kind, properties, region=self.surroundings.region)
            if found:
                reported = ", ".join(str(one) for one in found)
                raise ResourceError(f"Properties validation failed for resource {name} with message:\n[{reported}]")  # noqa: TRY301
        except (TemplateError, ResourceError) as error:
            with self.store.lock:
                entry = stack.resources.setdefault(name, desired)
            self.store.event(stack, status=f"{verb}_FAILED", reason=str(error), resource=entry)
            raise
        desired.properties, desired.sent = properties, sent
        if decided is plan.ResourceStep.UPDATE:
            assert current is not None
            self._update(stack, current, desired, switch)
        elif current is None and name in target.imports:
            self._import(stack, desired, switch)
        else:
            self._create(stack, current, desired, switch)

    def restore(self, stack: Stack, current: Resource, good: Resource, switch: Any) -> None:
        self._update(stack, current, copy.deepcopy(good), switch)

    def delete(self, stack: Stack, entry: Resource, switch: Any) -> None:
        if not entry.physical_id:
            return
        self.store.event(stack, status="DELETE_IN_PROGRESS", resource=entry)

        def work(context: ResourceContext) -> None:
            handler_for(entry.type).delete(context, _made(entry), entry.sent)

        self._guard(stack, entry, "DELETE", work, switch)
        self.store.event(stack, status="DELETE_COMPLETE", resource=entry)

    def _create(self, stack: Stack, current: Resource | None, desired: Resource, switch: Any) -> None:
        replacing = current is not None and bool(current.physical_id)
        if replacing and current is not None and current.status == "CREATE_FAILED":
            self.delete(stack, current, switch)
            replacing = False
        verb = "UPDATE" if replacing else "CREATE"
        with self.store.lock:
            if replacing and current is not None:
                stack.garbage.append(current)
            stack.resources[desired.logical_id] = desired
        reason = (
            "Requested update requires the creation of a new physical resource; hence creating one."
            if replacing
            else ""
        )
        self.store.event(stack, status=f"{verb}_IN_PROGRESS", reason=reason, resource=desired)

        remarks = []

        def work(context: ResourceContext) -> None:
            made = handler_for(desired.type).create(context, copy.deepcopy(desired.sent))
            remarks.append(made.remark)
            with self.store.lock:
                desired.physical_id, desired.attributes = made.physical_id, dict(made.attributes)
            trouble = self.surroundings.mishaps.strike(desired.logical_id)
            if trouble:
                raise ResourceError(trouble)

        self._guard(stack, desired, "CREATE" if not replacing else "UPDATE", work, switch)
        self.store.event(stack, status=f"{verb}_COMPLETE", reason="".join(remarks), resource=desired)

    def _import(self, stack: Stack, desired: Resource, switch: Any) -> None:
        """Take over what exists, as it is: what the template says otherwise is drift."""
        desired.imported = True
        with self.store.lock:
            stack.resources[desired.logical_id] = desired
        self.store.event(stack, status="IMPORT_IN_PROGRESS", reason="Resource import started.", resource=desired)

        def work(context: ResourceContext) -> None:
            handler = handler_for(desired.type)
            name = str(desired.sent[handler.custom_name])
            made = handler.existing(context, name)
            if made is None:
                raise ResourceError(f"Resource of type '{desired.type}' with identifier '{name}' was not found.")
            with self.store.lock:
                desired.physical_id, desired.attributes = made.physical_id, dict(made.attributes)

        self._guard(stack, desired, "IMPORT", work, switch)
        self.store.event(stack, status="IMPORT_COMPLETE", reason="Resource import completed.", resource=desired)

    def _update(self, stack: Stack, current: Resource, desired: Resource, switch: Any) -> None:
        before = current.sent
        self.store.event(stack, status="UPDATE_IN_PROGRESS", resource=current)
        remarks = []
        with self.store.lock:
            current.definition, current.needs = desired.definition, desired.needs
            current.properties, current.sent = desired.properties, desired.sent

        def work(context: ResourceContext) -> None:
            made = handler_for(current.type).update(context, _made(current), copy.deepcopy(desired.sent), before)
            remarks.append(made.remark)
            with self.store.lock:
                current.physical_id, current.attributes = made.physical_id, dict(made.attributes)

        self._guard(stack, current, "UPDATE", work, switch)
        self.store.event(stack, status="UPDATE_COMPLETE", reason="".join(remarks), resource=current)

    def _guard(self, stack: Stack, entry: Resource, verb: str, work: Any, switch: Any) -> None:
        def note(physical_id: str) -> None:
            with self.store.lock:
                fresh, entry.physical_id = not entry.physical_id, physical_id
            if fresh and physical_id:
                self.store.event(stack, status=entry.status, reason="Resource creation Initiated", resource=entry)

        context = self.surroundings.context(stack, entry.logical_id, pause=switch.pause, note=note)
        try:
            with acting_for(stack.role or root_of(self.surroundings.account)):
                work(context)
        except Stopped:
            raise
        except Exception as error:  # any failure of a handler is the resource's, never the engine's
            if not isinstance(error, (ClientError, ResourceError, Cancelled)):
                log.exception("handler of %s", entry.type)
            self.store.event(stack, status=f"{verb}_FAILED", reason=worded(error, verb), resource=entry)
            raise


def system_tags(stack: Stack, logical_id: str) -> Mapping[str, str]:
    """Return the tags that CloudFormation puts on a resource."""
    return {
        "aws:cloudformation:stack-name": stack.name,
        "aws:cloudformation:logical-id": logical_id,
        "aws:cloudformation:stack-id": stack.id,
    }


def worded(error: Exception, verb: str) -> str:
    if isinstance(error, Cancelled):
        return f"Resource {'creation' if verb == 'CREATE' else 'update'} cancelled"
    if isinstance(error, ClientError):
        reported = error.response["Error"]
        status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 400)
        return (
            f'Resource handler returned message: "{reported.get("Message", "")} '
            f'(Status Code: {status}, Error Code: {reported["Code"]}, Operation: {error.operation_name})"'
        )
    return str(error) or type(error).__name__


def _made(entry: Resource) -> Made:
    return Made(physical_id=entry.physical_id, attributes=entry.attributes)
