"""Procedures on one instance: prepare, replace, reboot, remove, each in a thread and resumable."""

import logging
import secrets
import time
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path

from holdfast.localcloud.hyperpod.api import PlaneClient, Report
from holdfast.localcloud.hyperpod.instances import ami
from holdfast.localcloud.hyperpod.instances.checks import DeepCheck
from holdfast.localcloud.hyperpod.instances.failures import KNOWN_FAILURES
from holdfast.localcloud.hyperpod.instances.machines import Machines
from holdfast.localcloud.hyperpod.instances.memory import Memory, Return
from holdfast.localcloud.hyperpod.lifecycle import PROVISIONING_LOG, Bundles, LifecycleError, Script
from holdfast.localcloud.hyperpod.logs import EventSink
from holdfast.localcloud.hyperpod.model import (
    ATTACHING,
    CHECKING,
    COMPUTE,
    CONTROLLER,
    CONTROLLER_NOT_READY,
    CREATING,
    DELETING,
    FAILURE,
    IN_SERVICE,
    LOGIN,
    MAX_ATTEMPTS,
    NOT_FOUND,
    OPENZFS,
    PENDING,
    RUNNING,
    SHUTTING_DOWN,
    SYSTEM_UPDATING,
    UPDATING,
    Cluster,
    Group,
    Instance,
    checking,
    completed,
    provisioning_failed,
    rebooting,
    replacing,
    script_event,
    script_failed,
    script_missing,
    updating,
)
from holdfast.localcloud.hyperpod.slurm import (
    SlurmClusters,
    SlurmError,
    is_enabled,
    revive_compute,
    write_configuration,
)
from holdfast.localcloud.kubernetes import Clusters
from holdfast.localcloud.nodes import Node
from holdfast_common import fault_named, kinds

_log = logging.getLogger(__name__)

_RETURNS = {
    "replace": (kinds.NODE_REPLACED, "replacement"),
    "reboot": (kinds.NODE_REBOOTED, "reboot"),
    "update": (kinds.NODE_UPDATED, "software update"),
}
"""Verb of a return -> its event, and the operation as the service names it."""


@dataclass(frozen=True, kw_only=True)
class Procedure:
    cluster: Cluster
    instance: Instance
    machines: Machines
    slurms: SlurmClusters
    kubernetes: Clusters
    bundles: Bundles
    memory: Memory
    events: EventSink
    plane: PlaneClient
    status_of: Callable[[str], str]
    """ARN of a cluster -> its last status."""
    lifecycle_timeout_s: float
    on_boot: Callable[[], None]
    """Called when the instance's init process runs."""

    @property
    def role(self) -> str:
        return self.cluster.group(self.instance.group).slurm_role

    @property
    def _group(self) -> Group:
        return self.cluster.group(self.instance.group)

    # --- prepare

    def prepare(self, *, afresh: bool) -> None:
        """Boot, configure, run lifecycle scripts, put in service; or report Failure with the reason."""
        began = time.monotonic()
        uri = self._group.lifecycle_uri
        bundle = self.bundles.begin(uri) if uri and self._group.script else None
        try:
            with self.memory.change(self.cluster.arn) as memory:
                back = memory.returning.get(self.instance.instance_id)
            node, kept = self._running(afresh=afresh, reboot=back is not None and back.verb == "reboot")
            if self.role and self._group.has_ami_configuration:
                self._configure(node)
            if bundle is not None and not kept:
                self._run_script(node, bundle=bundle)
            self._join_slurm(node)
            self._join_kubernetes(node)
        except KNOWN_FAILURES as error:
            self._fail(error)
            return
        if self._group.deep_checks and not kept:
            self.check(checks=self._group.deep_checks, began=began)
        else:
            self._in_service(began=began)

    def _running(self, *, afresh: bool, reboot: bool) -> tuple[Node, bool]:
        name = self.instance.instance_id
        node = self.machines.find(name)
        kept = reboot and node is not None
        if node is not None and (afresh or not node.alive()):
            node.destroy()
            if not kept:
                node.remove()
            node = None
        is_new = node is None and not kept
        if node is None:
            self._event(kinds.NODE_BOOTING)
            began = time.monotonic()
            node = self.machines.boot(self.cluster, self.instance, keep_root=kept)
            self._event(kinds.NODE_BOOTED, duration_s=time.monotonic() - began)
        self.machines.follow(node, cluster=self.cluster, group=self.instance.group, is_new=is_new)
        self.on_boot()
        return node, kept

    def _configure(self, node: Node) -> None:
        if self._group.mounts:
            # AWS's scripts, too, prefer OpenZFS for homes where there are both (utils/fsx_auto_detect.sh).
            first = max(self._group.mounts, key=lambda one: one.type == OPENZFS)
            ami.move_home(node, home=ami.shared_home(node, mount_path=first.mount_path))
        slurm = self.slurms.of(self.cluster)
        slurm.wait_formed()
        if self.role == LOGIN:
            # Slurm's commands need no daemon here.
            write_configuration(node, conf=slurm.conf)
        if self.role == COMPUTE and slurm.has_node(self.instance.host_name):
            slurm.wait_answering(is_given_up=self._is_given_up)
            if self.cluster.status != CREATING:
                # Jobs may be waiting for it. One that is made while nobody can have a job is spared the registration
                # that slurmctld asks for when a node is resumed: seconds for many nodes.
                slurm.drain(self.instance.host_name)
            self.slurms.start_slurmd(node, cluster=self.cluster)

    def _wait_for_line(self, node: Node) -> None:
        slurm = self.slurms.of(self.cluster)
        known = slurm.has_node(self.instance.host_name)
        self.slurms.arrive(self.instance.instance_id)
        self.on_boot()
        slurm.wait_formed(host_name=self.instance.host_name, timeout_s=self.slurms.node_line_timeout_s)
        # The controller's own script may take longer than this node's.
        slurm.wait_answering(timeout_s=self.lifecycle_timeout_s, is_given_up=self._is_given_up)
        if self._group.has_ami_configuration:
            if not known:
                self.slurms.start_slurmd(node, cluster=self.cluster)
        elif is_enabled(node, "slurmd"):
            revive_compute(node)

    def _is_given_up(self) -> bool:
        return self.status_of(self.cluster.arn) not in (CREATING, UPDATING, SYSTEM_UPDATING, IN_SERVICE)

    def _run_script(self, node: Node, *, bundle: "Future[Path]") -> None:
        group = self._group
        self._note(node, "[SageMaker] Downloading lifecycle scripts")
        script = Script(
            node=node,
            bundle=bundle.result(),
            name=group.script,
            uri=group.lifecycle_uri,
            timeout_s=self.lifecycle_timeout_s,
        )
        script.run()
        self._note(node, "[SageMaker] The lifecycle scripts succeeded.")

    def _note(self, node: Node, line: str) -> None:
        node.inside(PROVISIONING_LOG).append(line.encode() + b"\n")

    def _join_slurm(self, node: Node) -> None:
        if not self.role:
            return
        slurm = self.slurms.of(self.cluster)
        slurm.wait_formed()
        if self.role != COMPUTE:
            slurm.wait_answering(is_given_up=self._is_given_up)
        else:
            self._wait_for_line(node)
            if self._group.deep_checks:
                self._deep_check.hold()
            slurm.join(self.instance.host_name)
        self._event(kinds.SLURM_READY)

    def _join_kubernetes(self, node: Node) -> None:
        if self.kubernetes.has(self.cluster.eks_arn):
            self.kubernetes.join(self.cluster.eks_arn, node, is_over=self._is_given_up)
            self._event(kinds.KUBERNETES_READY)

    def _in_service(self, *, began: float) -> None:
        name, address = self.instance.instance_id, self.instance.address
        with self.memory.change(self.cluster.arn) as memory:
            back = memory.returning.pop(name, None)
            memory.attempts.pop(address, None)
            memory.failures.pop(name, None)
        self._event(kinds.NODE_IN_SERVICE, duration_s=time.monotonic() - began)
        operation = "creation"
        if back is not None:
            kind, operation = _RETURNS[back.verb]
            detail = {"replaces": back.old} if back.verb == "replace" else {}
            self._event(kind, duration_s=(time.time_ns() - back.since_ns) / 1e9, **detail)
        self._report(status=RUNNING, events=[completed(self.cluster, self.instance, operation=operation)])

    def _fail(self, error: Exception) -> None:
        reason = str(error)
        short = reason if len(reason) <= 900 else reason[:897] + "..."
        output = short
        if isinstance(error, LifecycleError):
            output = script_missing() if error.missing else script_failed(self.cluster, self.instance)
        elif isinstance(error, SlurmError) and self.role in (CONTROLLER, LOGIN):
            output = CONTROLLER_NOT_READY if self.cluster.status == CREATING else short
        with self.memory.change(self.cluster.arn) as memory:
            memory.failures[self.instance.instance_id] = output
            if isinstance(error, LifecycleError):
                memory.scripts_failed = sorted({*memory.scripts_failed, self.instance.instance_id})
        self._event(kinds.NODE_FAILED, fault=fault_named("lifecycle-failed").name, evidence=short)
        reported = [provisioning_failed(self.cluster, self.instance)]
        if isinstance(error, LifecycleError) and not error.missing:
            reported.insert(0, script_event(self.cluster, self.instance))
        self._report(status=FAILURE, message=output, events=reported, level="Error")

    # --- deep health checks

    @property
    def _deep_check(self) -> DeepCheck:
        return DeepCheck(
            cluster=self.cluster,
            instance=self.instance,
            slurms=self.slurms,
            kubernetes=self.kubernetes,
            events=self.events,
            is_given_up=self._is_given_up,
        )

    def check(self, *, checks: tuple[str, ...], began: float | None = None) -> None:
        """
        Run deep health checks once no job is on the node. Passed: in service; failed: replaced.

        Args:
            began: Start of its preparation, if it was not in service yet. Default: it was.
        """
        node, deep = self.machines.find(self.instance.instance_id), self._deep_check
        if node is None:
            return
        started = [checking(self.cluster, self.instance, outcome="started")]
        self._report(status=CHECKING, events=started if self.instance.status != CHECKING else [])
        deep.hold()
        if not deep.is_free():
            return  # decided again, and jobs are kept away meanwhile
        outcome = deep.run(node, checks=checks)
        if not node.alive():
            return  # decided as a lost one
        if outcome.failed:
            self._has_failed_checks(deep, output="; ".join(outcome.failed))
            return
        deep.release(passed=True)
        passed = [checking(self.cluster, self.instance, outcome="completed successfully")]
        with self.memory.change(self.cluster.arn) as memory:
            is_coming = began is not None or self.instance.instance_id in memory.returning
        if is_coming:
            self._report(status=CHECKING, events=passed)
            self._in_service(began=began or time.monotonic())
        else:
            self._report(status=RUNNING, events=passed)

    def _has_failed_checks(self, deep: DeepCheck, *, output: str) -> None:
        """ "The unhealthy nodes will be automatically rebooted or replaced" (API): replaced, which covers both."""
        short = output if len(output) <= 900 else output[:897] + "..."
        message = f"deep health check failed: {short}"
        with self.memory.change(self.cluster.arn) as memory:
            memory.failures[self.instance.instance_id] = message
            tried = memory.attempts.get(self.instance.address, 0)
        failed = checking(self.cluster, self.instance, outcome="failed")
        self._event(kinds.NODE_FAILED, evidence=message)
        if self.cluster.node_recovery == "Automatic" and tried < MAX_ATTEMPTS:
            self._report(status=CHECKING, events=[failed], level="Error")
            deep.release(passed=False)
            self.replace(cause=message, lost=False)
            return
        if self.role == COMPUTE:
            self.slurms.of(self.cluster).down(self.instance.host_name, reason="deep health check failed")
        deep.release(passed=False)
        self._report(status=FAILURE, message=message, events=[failed], level="Error")

    # --- replace, reboot, remove, give up

    def replace(self, *, cause: str, lost: bool) -> None:
        """Replace the instance; the next decision prepares the new one."""
        since_ns = time.time_ns()
        old, new = self.instance.instance_id, "i-" + secrets.token_hex(9)[:17]
        if lost:
            self._event(kinds.NODE_LOST, fault=fault_named("instance-lost").name, evidence=cause, action="replace")
        jobs = self._jobs()
        if self.role == "Compute":
            self.slurms.of(self.cluster).down(self.instance.host_name, reason="Action:Replace")
        self._event(kinds.NODE_REPLACING, evidence=cause, action="replace", replacement=new, jobs=jobs)
        self._shut_down()
        self._destroy()
        with self.memory.change(self.cluster.arn) as memory:
            memory.failures.pop(old, None)
            earlier = memory.returning.pop(old, None)
            memory.attempts[self.instance.address] = memory.attempts.get(self.instance.address, 0) + 1
            memory.returning[new] = Return(
                verb="replace",
                old=earlier.old if earlier else old,
                since_ns=earlier.since_ns if earlier else since_ns,
            )
            memory.settled = [new if one == old else one for one in memory.settled]
        node = {"instance_id": new, "status": PENDING, "replaces": old, "private_ip": self.instance.address}
        output = replacing(self.cluster, self.instance, new=new)
        self.plane.report(
            Report(
                arn=self.cluster.arn,
                nodes=({**node, "launch_time": time.time()},),
                events=(self._service_event(output, level="Warn" if lost else "Info", instance_id=new),),
            )
        )

    def reboot(self, *, cause: str, unreachable: bool) -> None:
        """Stop the instance; the next decision boots it with its root."""
        if unreachable:
            fault = fault_named("instance-unreachable").name
            self._event(kinds.NODE_LOST, fault=fault, evidence=cause, action="reboot")
        with self.memory.change(self.cluster.arn) as memory:
            back = Return(verb="reboot", old=self.instance.instance_id, since_ns=time.time_ns())
            memory.returning[self.instance.instance_id] = back
        self._event(kinds.NODE_REBOOTING, evidence=cause, action="reboot", jobs=self._jobs())
        if self.role == "Compute":
            self.slurms.of(self.cluster).down(self.instance.host_name, reason="Action:Reboot")
        node = self.machines.find(self.instance.instance_id)
        if node is not None:
            node.destroy()
        self._report(status=PENDING, events=[rebooting(self.cluster, self.instance)])

    def update(self) -> None:
        """Remove the root of the instance; the next decision boots it with a new one."""
        with self.memory.change(self.cluster.arn) as memory:
            memory.failures.pop(self.instance.instance_id, None)
            back = Return(verb="update", old=self.instance.instance_id, since_ns=time.time_ns())
            memory.returning[self.instance.instance_id] = back
        self._event(kinds.NODE_UPDATING, evidence="UpdateClusterSoftware was called", jobs=self._jobs())
        if self.role == "Compute":
            self.slurms.of(self.cluster).down(self.instance.host_name, reason="software update")
        self._destroy()
        self._report(status=SYSTEM_UPDATING, events=[updating(self.cluster, self.instance)])

    def detach(self) -> None:
        """Remove the root of the instance; the service names its new group, and the next decision boots it there."""
        self._event(kinds.NODE_MOVING, evidence="MoveClusterNodes was called")
        self._destroy()
        self._report(status=ATTACHING, events=[])

    def _jobs(self) -> str:
        """Jobs of the node: Slurm requeues them, and forgets where they were, when it is set DOWN."""
        return self.slurms.of(self.cluster).jobs_on(self.instance.host_name) if self.role == "Compute" else ""

    def remove(self) -> None:
        """Delete the instance, after its events were shipped."""
        if self.role == "Compute" and self.cluster.status != DELETING:
            self.slurms.of(self.cluster).down(self.instance.host_name, reason="the instance is deleted")
        self._shut_down()
        self._destroy()
        with self.memory.change(self.cluster.arn) as memory:
            memory.failures.pop(self.instance.instance_id, None)
            memory.returning.pop(self.instance.instance_id, None)
            memory.attempts.pop(self.instance.address, None)
        self._event(kinds.NODE_DELETED)
        self._report(status=NOT_FOUND, events=[completed(self.cluster, self.instance, operation="deletion")])

    def give_up(self, *, message: str) -> None:
        with self.memory.change(self.cluster.arn) as memory:
            memory.failures[self.instance.instance_id] = message
        if self.role == "Compute":
            self.slurms.of(self.cluster).down(self.instance.host_name, reason="the instance is lost")
        self._event(kinds.NODE_LOST, fault=fault_named("instance-lost").name, evidence=message)
        self._report(status=FAILURE, message=message, events=[message], level="Error")

    def _shut_down(self) -> None:
        if self.cluster.kubernetes and self.cluster.status != DELETING:
            self._report(status=SHUTTING_DOWN, events=[])

    def _destroy(self) -> None:
        node = self.machines.find(self.instance.instance_id)
        if node is not None:
            self.machines.end(node)
        self.kubernetes.leave(self.cluster.eks_arn, self.instance.instance_id)

    # --- telling

    def _event(
        self,
        kind: str,
        *,
        fault: str = "",
        evidence: str = "",
        action: str = "",
        duration_s: float | None = None,
        jobs: str = "",
        **detail: str,
    ) -> None:
        detail |= {"jobs": jobs} if jobs else {}
        self.events.emit(
            kind,
            cluster=self.cluster.name,
            node=self.instance.instance_id,
            fault=fault,
            evidence=evidence,
            action=action,
            duration_s=duration_s,
            detail={"group": self.instance.group, "host": self.instance.host_name, **detail},
        )

    def _report(self, *, status: str, events: list[str], message: str = "", level: str = "Info") -> None:
        node = {"instance_id": self.instance.instance_id, "status": status}
        if message:
            node["message"] = message
        reported = tuple(self._service_event(one, level=level, instance_id=self.instance.instance_id) for one in events)
        self.plane.report(Report(arn=self.cluster.arn, nodes=(node,), events=reported))

    def _service_event(self, description: str, *, level: str, instance_id: str) -> dict[str, str]:
        return {
            "resource_type": "Instance",
            "instance_group": self.instance.group,
            "instance_id": instance_id,
            "description": description,
            "level": level,
        }
