"""
Deployment engine.

Executes what `plan` decides: resources in dependency order and in parallel, each step recorded, rollback on failure,
resume after a restart. `api` decides which requests are allowed.
"""

import copy
import logging
import threading
import uuid
from collections.abc import Callable

from botocore.exceptions import BotoCoreError, ClientError

from holdfast.localcloud.aws.cloudformation.deployment import plan
from holdfast.localcloud.aws.cloudformation.deployment.store import DeploymentTarget, Resource, Stack
from holdfast.localcloud.aws.cloudformation.deployment.surroundings import Surroundings
from holdfast.localcloud.aws.cloudformation.deployment.worker import ResourceWorker
from holdfast.localcloud.aws.cloudformation.resources.handlers import Stopped
from holdfast.localcloud.aws.cloudformation.template import TemplateError
from holdfast.localcloud.aws.cloudformation.timing import course, run, run_in_time
from holdfast.localcloud.aws.common import now

log = logging.getLogger(__name__)

INTERRUPTED = "interrupted: the embedded AWS was stopped during the operation"


class DeploymentFailed(Exception):  # noqa: N818 - a turn of events, not an error of ours
    """A deployment failed; the text is the stack's status reason."""


class Engine:
    """Engine of deployments. Every operation runs in its own thread; stacks do not wait for each other."""

    def __init__(self, *, surroundings: Surroundings) -> None:
        self.surroundings, self.store = surroundings, surroundings.store
        self._stopping = threading.Event()
        self._threads: set[threading.Thread] = set()
        self._worker = ResourceWorker(surroundings=surroundings)

    def close(self) -> None:
        """Stop all waits and join; ``resume`` continues what was in progress."""
        self._stopping.set()
        for thread in list(self._threads):
            thread.join()

    def start(self, stack: Stack, work: Callable[[], None], *, kind: str, token: str | None = None) -> str:
        """Run an operation of a stack in the background; return its id."""
        with self.store.lock:
            stack.operation, stack.token = str(uuid.uuid4()), token
            stack.operations.append((kind, stack.operation))

        def guarded() -> None:
            try:
                work()
            except Stopped:
                log.info("stack %s: stopped in the middle of %s", stack.name, kind)
            finally:
                self._threads.discard(threading.current_thread())
                self.store.on_change()

        thread = threading.Thread(target=guarded, name=f"stack-{stack.name}", daemon=True)
        self._threads.add(thread)
        thread.start()
        return stack.operation

    # -- create and update

    def deploy(self, stack: Stack, target: DeploymentTarget, *, retain_except_on_create: bool = False) -> None:
        """Deploy the target; roll back if that fails."""
        creating = stack.status == "CREATE_IN_PROGRESS"
        try:
            self._converge(stack, target)
            self._finish(stack, target, creating=creating)
        except DeploymentFailed as failure:
            with self.store.lock:
                if creating:
                    stack.target = target
            if stack.disable_rollback:
                self.store.event(stack, status="CREATE_FAILED" if creating else "UPDATE_FAILED", reason=str(failure))
            elif creating and stack.on_failure == "DELETE":
                self.delete(stack, reason=str(failure))
            else:
                self.roll_back(stack, reason=str(failure), except_on_create=retain_except_on_create)

    def _converge(self, stack: Stack, target: DeploymentTarget) -> None:
        imports: set[str] = set()
        try:
            scope = self.surroundings.scope(stack, target, stack.resources, imports=imports)
            desired = plan.desired(target.document, scope)
        except TemplateError as error:
            raise DeploymentFailed(str(error)) from None
        needs = plan.needs(target.document, desired)

        def work(name: str, switch: object) -> None:
            self._worker.converge(stack, name, desired[name], needs[name], scope, target, switch)

        errors = run_in_time(
            needs,
            work,
            courses={name: course(desired[name]["Type"]) for name in needs},
            stopping=self._stopping,
            skip=self.surroundings.skip,
            late=self.surroundings.mishaps.late,
        )
        with self.store.lock:
            stack.imports = imports
            self.store.changed()
        if errors:
            verb = "create" if stack.status == "CREATE_IN_PROGRESS" else "update"
            raise DeploymentFailed(f"The following resource(s) failed to {verb}: [{', '.join(sorted(errors))}]. ")

    def _finish(self, stack: Stack, target: DeploymentTarget, *, creating: bool) -> None:
        try:
            outputs, desired = self._outputs(stack, target)
        except TemplateError as error:
            raise DeploymentFailed(str(error)) from None
        with self.store.lock:
            stack.target, stack.outputs, stack.good = target, outputs, None
            removed = [entry for name, entry in stack.resources.items() if name not in desired]
            stack.garbage += removed
            for entry in removed:
                del stack.resources[entry.logical_id]
        if creating:
            self.store.event(stack, status="CREATE_COMPLETE")
            return
        self.store.event(stack, status="UPDATE_COMPLETE_CLEANUP_IN_PROGRESS")
        self.clean_up(stack, then="UPDATE_COMPLETE")

    def _outputs(self, stack: Stack, target: DeploymentTarget) -> tuple[list[dict[str, str]], set[str]]:
        scope = self.surroundings.scope(stack, target, stack.resources)
        outputs = []
        for name, output in target.document.get("Outputs", {}).items():
            if "Condition" in output and not scope.holds(output["Condition"]):
                continue
            value = scope.resolve(output["Value"])
            entry = {"OutputKey": name, "OutputValue": value if isinstance(value, str) else str(value)}
            entry |= {"Description": output["Description"]} if "Description" in output else {}
            if "Export" in output:
                entry["ExportName"] = str(scope.resolve(output["Export"]["Name"]))
            outputs.append(entry)
        self._check_exports(stack, outputs)
        return outputs, set(plan.desired(target.document, scope))

    def _check_exports(self, stack: Stack, outputs: list[dict[str, str]]) -> None:
        exported = {entry["ExportName"]: entry["OutputValue"] for entry in outputs if "ExportName" in entry}
        before = {entry["ExportName"]: entry["OutputValue"] for entry in stack.outputs if "ExportName" in entry}
        others = {name for name, (_, owner) in self.store.exports().items() if owner != stack.id}
        for name in exported.keys() & others:
            raise TemplateError(
                f"Export with name {name} is already exported by another stack. Rollback requested by user."
            )
        for name, value in before.items():
            users = self.store.importers(name)
            if users and exported.get(name) != value:
                verb = "updated" if name in exported else "deleted"
                raise TemplateError(f"Export {name} cannot be {verb} as it is in use by {', '.join(users)}")

    def clean_up(self, stack: Stack, *, then: str, except_on_create: bool = False) -> None:
        """Delete replaced and removed resources. A failure is recorded only, as in AWS."""
        creating = "ROLLBACK" in then
        garbage = {f"{entry.logical_id} {number}": entry for number, entry in enumerate(stack.garbage)}
        order = plan.reverse(garbage.values())
        needs = {
            key: {other for other, user in garbage.items() if user.logical_id in order[entry.logical_id]}
            for key, entry in garbage.items()
        }

        def work(key: str, switch: object) -> None:
            entry = garbage[key]
            replaced = entry.logical_id in stack.resources
            policy = "UpdateReplacePolicy" if replaced and not creating else "DeletionPolicy"
            keep = plan.retained(entry, policy, creating=creating, except_on_create=except_on_create)
            if keep and not (replaced and creating):
                self.store.event(stack, status="DELETE_SKIPPED", resource=entry)
            else:
                self._worker.delete(stack, entry, switch)

        errors = run(needs, work, stopping=self._stopping, go_on=True, skip=self.surroundings.skip)
        with self.store.lock:
            stack.garbage = [entry for key, entry in garbage.items() if key in errors] if creating else []
        self.store.event(stack, status=then)

    # -- back

    def roll_back(
        self, stack: Stack, *, reason: str, except_on_create: bool = False, skip: frozenset[str] = frozenset()
    ) -> None:
        """Roll back to the last good state; a stack without one loses its resources."""
        if stack.good is None:
            why = f"{reason} Rollback requested by user.".strip()
            self.store.event(stack, status="ROLLBACK_IN_PROGRESS", reason=why)
            errors = self._delete_all(stack, creating=True, except_on_create=except_on_create)
            self.store.event(stack, status="ROLLBACK_FAILED" if errors else "ROLLBACK_COMPLETE", reason=_listed(errors))
            return
        self.store.event(stack, status="UPDATE_ROLLBACK_IN_PROGRESS", reason=reason)
        target, good = stack.good
        changed = self._take_back(stack, good, skip)
        needs = {name: entry.needs for name, entry in good.items() if name in changed}

        def work(name: str, switch: object) -> None:
            self._worker.restore(stack, stack.resources[name], good[name], switch)

        errors = run(needs, work, stopping=self._stopping, go_on=True, skip=self.surroundings.skip)
        if errors:
            self.store.event(
                stack,
                status="UPDATE_ROLLBACK_FAILED",
                reason=f"The following resource(s) failed to update: [{', '.join(sorted(errors))}]. ",
            )
            return
        with self.store.lock:
            stack.target, stack.good = target, None
        self.store.event(stack, status="UPDATE_ROLLBACK_COMPLETE_CLEANUP_IN_PROGRESS")
        self.clean_up(stack, then="UPDATE_ROLLBACK_COMPLETE", except_on_create=except_on_create)

    def _take_back(self, stack: Stack, good: dict[str, Resource], skip: frozenset[str]) -> set[str]:
        changed = set()
        with self.store.lock:
            for name, current in list(stack.resources.items()):
                before = good.get(name)
                if before is None or current.physical_id != before.physical_id:
                    del stack.resources[name]
                    if current.physical_id:
                        stack.garbage.append(current)
                if before is None:
                    continue
                if current.physical_id != before.physical_id or name in skip:
                    stack.resources[name] = copy.deepcopy(before)
                    ids = {before.physical_id}
                    stack.garbage = [e for e in stack.garbage if e.logical_id != name or e.physical_id not in ids]
                elif current.sent != before.sent or current.status.endswith("_FAILED"):
                    changed.add(name)
                else:
                    current.definition, current.needs = before.definition, before.needs
            self.store.changed()
        return changed

    # -- delete

    def delete(self, stack: Stack, *, reason: str = "User Initiated", retain: frozenset[str] = frozenset()) -> None:
        """Delete the stack's resources, then the stack; a resource that cannot be deleted keeps the stack."""
        self.store.event(stack, status="DELETE_IN_PROGRESS", reason=reason)
        errors = self._delete_all(stack, creating=False, retain=retain)
        if errors:
            self.store.event(stack, status="DELETE_FAILED", reason=_listed(errors))
            return
        with self.store.lock:
            stack.deleted, stack.imports = now(), set()
        self.store.event(stack, status="DELETE_COMPLETE")

    def _delete_all(
        self, stack: Stack, *, creating: bool, except_on_create: bool = False, retain: frozenset[str] = frozenset()
    ) -> dict[str, BaseException]:
        with self.store.lock:
            waste, stack.garbage = stack.garbage, []
        for entry in reversed(waste):
            if not plan.retained(entry, "DeletionPolicy", creating=creating, except_on_create=except_on_create):
                stack.resources[f"{entry.logical_id}:{entry.physical_id}"] = entry
        needs = {
            key: {other for other, user in stack.resources.items() if entry.logical_id in user.needs and other != key}
            for key, entry in stack.resources.items()
        }
        late = self.surroundings.mishaps.late
        needs = dict(sorted(needs.items(), key=lambda one: one[0] not in late))  # what comes last is the first to go

        def work(name: str, switch: object) -> None:
            entry = stack.resources[name]
            kept = plan.retained(entry, "DeletionPolicy", creating=creating, except_on_create=except_on_create)
            if (kept and entry.physical_id) or name in retain:
                self.store.event(stack, status="DELETE_SKIPPED", resource=entry)
            elif entry.physical_id:
                self._worker.delete(stack, entry, switch)
            with self.store.lock:
                del stack.resources[name]

        return run(needs, work, stopping=self._stopping, go_on=True, skip=self.surroundings.skip)

    # -- after a restart

    def resume(self) -> None:
        """Finish the operations that a stopped process left in progress."""
        with self.store.lock:
            busy = [stack for stack in self.store.stacks.values() if stack.busy]
            for stack in busy:
                for entry in [*stack.resources.values(), *stack.garbage]:
                    if entry.status.endswith("_IN_PROGRESS"):
                        status = entry.status.replace("_IN_PROGRESS", "_FAILED")
                        self.store.event(stack, status=status, reason=INTERRUPTED, resource=entry, quiet=True)
        for stack in busy:
            self._resume(stack)

    def _resume(self, stack: Stack) -> None:
        match stack.status:
            case "DELETE_IN_PROGRESS":
                self.store.event(stack, status="DELETE_FAILED", reason=INTERRUPTED)
            case "CREATE_IN_PROGRESS" | "UPDATE_IN_PROGRESS" if stack.disable_rollback:
                self.store.event(stack, status=stack.status.replace("IN_PROGRESS", "FAILED"), reason=INTERRUPTED)
            case "UPDATE_COMPLETE_CLEANUP_IN_PROGRESS":
                self._later(stack, "UPDATE_STACK", lambda: self.clean_up(stack, then="UPDATE_COMPLETE"))
            case "UPDATE_ROLLBACK_COMPLETE_CLEANUP_IN_PROGRESS":
                self._later(stack, "ROLLBACK", lambda: self.clean_up(stack, then="UPDATE_ROLLBACK_COMPLETE"))
            case _:
                self._later(stack, "ROLLBACK", lambda: self.roll_back(stack, reason=INTERRUPTED))

    def _later(self, stack: Stack, kind: str, work: Callable[[], None]) -> None:
        def patient() -> None:
            for _ in range(300):
                if self._served():
                    break
                if self._stopping.wait(0.1):
                    raise Stopped
            work()

        self.start(stack, patient, kind=kind)

    def _served(self) -> bool:
        try:
            self.surroundings.client("sts").get_caller_identity()
        except (BotoCoreError, ClientError):
            return False
        return True


def _listed(errors: dict[str, BaseException]) -> str:
    names = sorted(name.split(":")[0] for name in errors)
    return f"The following resource(s) failed to delete: [{', '.join(names)}]. " if errors else ""
