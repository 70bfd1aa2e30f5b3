"""
What is done to one instance, each as one procedure that runs in a thread of its own: prepare, replace, reboot, remove.

When to do it is ``_reconcile``'s. A procedure that ends early, or whose process ends, leaves records from which the
next decision goes on.
"""

import logging
import secrets
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from holdfast.localcloud.hyperpod._aws import Report
from holdfast.localcloud.hyperpod._lifecycle import Script, folder_of
from holdfast.localcloud.hyperpod._logs import now_ms
from holdfast.localcloud.hyperpod._lustre import ensure_directory
from holdfast.localcloud.hyperpod._model import (
    DELETING,
    FAILURE,
    NOT_FOUND,
    PENDING,
    RUNNING,
    Cluster,
    Instance,
)
from holdfast.localcloud.hyperpod._node_files import (
    EVENTS,
    RESOURCE_CONFIG,
    hosts,
    job_environment,
    resource_config,
    task_prolog,
)
from holdfast.localcloud.hyperpod._slurm_conf import TASK_PROLOG
from holdfast.localcloud.hyperpod._state import Return
from holdfast.localcloud.hyperpod._tools import KNOWN_FAILURES, Tools, munge_key
from holdfast.localcloud.nodes import FileSpec, Mount, Node, NodeError, NodeSpec, python_mounts
from holdfast_common import fault_named, kinds

TRAINING_ENVIRONMENT = "/opt/holdfast/env"

_log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class Procedure:
    """One instance of one cluster, and the procedures on it."""

    tools: Tools
    cluster: Cluster
    instance: Instance
    on_boot: Any = None
    """Called without arguments when the instance's init process runs."""

    @property
    def role(self) -> str:
        return self.cluster.group(self.instance.group).slurm_role

    # --- prepare

    def prepare(self, *, afresh: bool) -> None:
        """Boot, Slurm, lifecycle scripts, in service; or Failure with the reason."""
        began = time.monotonic()
        uri = self.cluster.group(self.instance.group).lifecycle_uri
        bundle = self.tools.bundles.begin(uri) if uri else None
        try:
            with self.tools.memory.change(self.cluster.arn) as memory:
                back = memory.returning.get(self.instance.instance_id)
            node, kept = self._running(afresh=afresh, reboot=back is not None and back.verb == "reboot")
            self._start_slurm(node)
            if bundle is not None and not kept:
                self._run_lifecycle(node, bundle=bundle.result())
            self._join_slurm()
        except KNOWN_FAILURES as error:
            self._fail(str(error))
            return
        self._in_service(began=began)

    def _running(self, *, afresh: bool, reboot: bool) -> tuple[Node, bool]:
        """The running node, and whether it came back with what it had written before."""
        name = self.instance.instance_id
        node = self.tools.find(name)
        kept = reboot and node is not None
        if node is not None and (afresh or not node.alive()):
            node.destroy()
            if not kept:
                node.remove()
            node = None
        if node is None:
            self._event(kinds.NODE_BOOTING)
            began = time.monotonic()
            with self.tools.boots:
                node = self.tools.fleet.boot(self._spec(), keep_root=kept)
            self._event(kinds.NODE_BOOTED, duration_s=time.monotonic() - began)
        self.tools.tailer.follow(instance_id=name, cluster=self.cluster.name, path=node.outside(EVENTS))
        if self.on_boot:
            self.on_boot()
        return node, kept

    def _spec(self) -> NodeSpec:
        cluster, instance = self.cluster, self.instance
        prolog = task_prolog(environment=job_environment(cluster, instance))
        files = {
            "/etc/hosts": FileSpec(content=hosts(cluster).encode()),
            RESOURCE_CONFIG: FileSpec(content=resource_config(cluster).encode()),
            TASK_PROLOG: FileSpec(content=prolog.encode(), mode=0o755),
        }
        if self.role:
            key = munge_key(self.tools.home, cluster)
            files["/etc/munge/munge.key"] = FileSpec(content=key, mode=0o400, owner="munge:munge")
        return NodeSpec(
            instance_id=instance.instance_id,
            hostname=instance.host_name,
            address=instance.address,
            mounts=(*python_mounts(at=TRAINING_ENVIRONMENT), *self.tools.containers.mounts, *self._storage()),
            files=files,
        )

    def _storage(self) -> list[Mount]:
        mounts = []
        for wanted in self.cluster.group(self.instance.group).mounts:
            for one in self.tools.file_systems:
                if (one.dns_name, one.mount_name) == (wanted.dns_name, wanted.mount_name):
                    mounts.append(Mount(source=ensure_directory(self.tools.home, one), target=wanted.mount_path))
                    break
            else:
                raise NodeError(
                    f"no file system has the DNS name {wanted.dns_name} and the mount name {wanted.mount_name}; "
                    f"check InstanceStorageConfigs of instance group {self.instance.group}"
                )
        return mounts

    def _start_slurm(self, node: Node) -> None:
        if not self.role:
            return
        slurm = self.tools.slurm(self.cluster)
        if self.role == "Compute":
            slurm.wait_formed(host_name=self.instance.host_name)
            slurm.drain(self.instance.host_name)
            slurm.start_compute(node=node, controller_address=self.cluster.with_role("Controller")[0].address)
            return
        slurm.wait_formed()
        if self.role == "Login":
            slurm.start_login(node=node)

    def _run_lifecycle(self, node: Node, *, bundle: Path) -> None:
        group = self.cluster.group(self.instance.group)
        if not group.on_create:
            return
        where = {
            "group": f"/aws/sagemaker/Clusters/{self.cluster.name}/{self.cluster.cluster_id}",
            "stream": f"LifecycleConfig/{group.name}/{self.instance.instance_id}",
        }
        script = Script(
            node=node,
            bundle=bundle,
            name=group.on_create,
            folder=folder_of(group.lifecycle_uri),
            timeout_s=self.tools.lifecycle_timeout_s,
        )
        script.run(on_line=lambda line: self.tools.shipper.put(**where, lines=[(now_ms(), line)]))

    def _join_slurm(self) -> None:
        if self.role == "Compute":
            self.tools.slurm(self.cluster).join(self.instance.host_name)
        if self.role:
            self._event(kinds.SLURM_READY)

    def _in_service(self, *, began: float) -> None:
        name, address = self.instance.instance_id, self.instance.address
        with self.tools.memory.change(self.cluster.arn) as memory:
            back = memory.returning.pop(name, None)
            memory.attempts.pop(address, None)
            memory.failures.pop(name, None)
        self._event(kinds.NODE_IN_SERVICE, duration_s=time.monotonic() - began)
        said = "The instance is in service."
        if back is not None:
            kind = kinds.NODE_REPLACED if back.verb == "replace" else kinds.NODE_REBOOTED
            detail = {"replaces": back.old} if back.verb == "replace" else {}
            self._event(kind, duration_s=(time.time_ns() - back.since_ns) / 1e9, **detail)
            said = f"The instance replaced {back.old}." if back.verb == "replace" else "The instance was rebooted."
        self._report(status=RUNNING, description=said)

    def _fail(self, message: str) -> None:
        short = message if len(message) <= 900 else message[:897] + "..."
        with self.tools.memory.change(self.cluster.arn) as memory:
            memory.failures[self.instance.instance_id] = short
        self._event(kinds.NODE_FAILED, fault=fault_named("lifecycle-failed").name, evidence=short)
        where = f"Instance {self.instance.instance_id} of instance group {self.instance.group}"
        self._report(status=FAILURE, message=short, description=f"{where} failed: {short}", level="Error")

    # --- replace, reboot, remove, give up

    def replace(self, *, cause: str, lost: bool) -> None:
        """Take the instance out and put a new one in its place; preparing that one is the next decision."""
        since_ns = time.time_ns()
        old, new = self.instance.instance_id, "i-" + secrets.token_hex(9)[:17]
        if lost:
            self._event(kinds.NODE_LOST, fault=fault_named("instance-lost").name, evidence=cause, action="replace")
        if self.role == "Compute":
            self.tools.slurm(self.cluster).down(self.instance.host_name, reason="Action:Replace")
        self._event(kinds.NODE_REPLACING, evidence=cause, action="replace", replacement=new)
        self._destroy()
        with self.tools.memory.change(self.cluster.arn) as memory:
            failed = memory.failures.pop(old, None) is not None
            earlier = memory.returning.pop(old, None)
            if lost or failed:
                memory.attempts[self.instance.address] = memory.attempts.get(self.instance.address, 0) + 1
            memory.returning[new] = Return(
                verb="replace",
                old=earlier.old if earlier else old,
                since_ns=earlier.since_ns if earlier else since_ns,
            )
            memory.settled = [new if one == old else one for one in memory.settled]
        node = {"instance_id": new, "status": PENDING, "replaces": old, "private_ip": self.instance.address}
        said = f"Instance {old} is being replaced by {new}: {cause}."
        self.tools.plane.report(
            Report(
                arn=self.cluster.arn,
                nodes=({**node, "launch_time": time.time()},),
                events=(self._service_event(said, level="Warn" if lost else "Info", instance_id=new),),
            )
        )

    def reboot(self, *, cause: str, unreachable: bool) -> None:
        """Stop the instance; booting it again, on what it had written, is the next decision."""
        if unreachable:
            fault = fault_named("instance-unreachable").name
            self._event(kinds.NODE_LOST, fault=fault, evidence=cause, action="reboot")
        with self.tools.memory.change(self.cluster.arn) as memory:
            back = Return(verb="reboot", old=self.instance.instance_id, since_ns=time.time_ns())
            memory.returning[self.instance.instance_id] = back
        self._event(kinds.NODE_REBOOTING, evidence=cause, action="reboot")
        if self.role == "Compute":
            self.tools.slurm(self.cluster).down(self.instance.host_name, reason="Action:Reboot")
        node = self.tools.find(self.instance.instance_id)
        if node is not None:
            node.destroy()
        self._report(status=PENDING, description=f"The instance is being rebooted: {cause}.")

    def remove(self) -> None:
        """Delete the instance; its event file has been shipped to the end before."""
        if self.role == "Compute" and self.cluster.status != DELETING:
            self.tools.slurm(self.cluster).down(self.instance.host_name, reason="the instance is deleted")
        self._destroy()
        with self.tools.memory.change(self.cluster.arn) as memory:
            memory.failures.pop(self.instance.instance_id, None)
            memory.returning.pop(self.instance.instance_id, None)
            memory.attempts.pop(self.instance.address, None)
        self._event(kinds.NODE_DELETED)
        self._report(status=NOT_FOUND, description="The instance was deleted.")

    def give_up(self, *, message: str) -> None:
        """Report a lost instance as Failure and leave it to a person."""
        with self.tools.memory.change(self.cluster.arn) as memory:
            memory.failures[self.instance.instance_id] = message
        if self.role == "Compute":
            self.tools.slurm(self.cluster).down(self.instance.host_name, reason="the instance is lost")
        self._event(kinds.NODE_LOST, fault=fault_named("instance-lost").name, evidence=message)
        self._report(status=FAILURE, message=message, description=message, level="Error")

    def _destroy(self) -> None:
        node = self.tools.find(self.instance.instance_id)
        if node is not None:
            node.destroy()
            self.tools.tailer.finish(instance_id=self.instance.instance_id)
            node.remove()

    # --- telling

    def _event(
        self,
        kind: str,
        *,
        fault: str = "",
        evidence: str = "",
        action: str = "",
        duration_s: float | None = None,
        **detail: str,
    ) -> None:
        self.tools.events.emit(
            kind,
            cluster=self.cluster.name,
            node=self.instance.instance_id,
            fault=fault,
            evidence=evidence,
            action=action,
            duration_s=duration_s,
            detail={"group": self.instance.group, "host": self.instance.host_name, **detail},
        )

    def _report(self, *, status: str, description: str, message: str = "", level: str = "Info") -> None:
        node = {"instance_id": self.instance.instance_id, "status": status}
        if message:
            node["message"] = message
        event = self._service_event(description, level=level, instance_id=self.instance.instance_id)
        self.tools.plane.report(Report(arn=self.cluster.arn, nodes=(node,), events=(event,)))

    def _service_event(self, description: str, *, level: str, instance_id: str) -> dict[str, str]:
        return {
            "resource_type": "Instance",
            "instance_group": self.instance.group,
            "instance_id": instance_id,
            "description": description,
            "level": level,
        }
