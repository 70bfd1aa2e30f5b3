import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from holdfast_operator.jobs.log_rules import LogRule
from holdfast_operator.jobs.status import Status

QUEUE_LABEL, PRIORITY_LABEL = "kueue.x-k8s.io/queue-name", "kueue.x-k8s.io/priority-class"
"""Kueue's labels of a job (reference page "Labels and Annotations", read 2026-11-30)."""


@dataclass(frozen=True, kw_only=True)
class Nodes:
    size: int
    """Nodes that train."""
    spares: int = 0
    """Nodes that wait for the ranks of another one."""
    sizes: tuple[int, ...] = ()
    """Allowed sizes of an elastic job, ascending. Default: it keeps its size."""

    @property
    def most(self) -> int:
        return max(self.sizes, default=self.size)

    @property
    def least(self) -> int:
        return min(self.sizes, default=self.size)

    @property
    def launchers(self) -> int:
        """Launchers that the job may have, each with an index below it."""
        return self.most + self.spares

    @property
    def pods(self) -> int:
        """Pods of the current size."""
        return self.size + self.spares

    def trained(self, running: int) -> int:
        """Return the nodes that train where so many pods run."""
        return max((size for size in self.sizes or (self.size,) if size <= min(running, self.size)), default=0)

    @property
    def gang(self) -> int:
        """Pods that a queue admits together."""
        return self.least + self.spares


@dataclass(frozen=True, kw_only=True)
class Recovery:
    launcher_restarts: int = 20
    """Pods that are created again because their launcher failed, in the life of the job."""
    job_restarts: int = 3
    """Restarts of all pods, from the newest checkpoint."""
    node_failures: int = 2
    """Failed launchers of a node, after which it gets no pod of the job."""
    restart_all_after: int | None = None
    """Restarts of launchers in a period, after which all pods are restarted. Default: never."""
    period_s: float | None = None
    """Time after which ``restart_all_after`` and ``job_restarts`` count from 0. Default: the life of the job."""


@dataclass(frozen=True, kw_only=True)
class Deadlines:
    start_s: float | None = None
    """Until all nodes run for the first time. Default: none."""
    active_s: float | None = None
    """From the first pod to the end. Default: none."""
    fault_s: float | None = None
    """With fewer nodes than the least size, after it had all nodes. Default: none."""


@dataclass(frozen=True, kw_only=True)
class Job:
    name: str
    namespace: str
    uid: str
    nodes: Nodes
    processes: int
    """Ranks per node."""
    template: Mapping[str, Any]
    """Pod template, as the user wrote it."""
    recovery: Recovery = Recovery()
    deadlines: Deadlines = Deadlines()
    log_rules: tuple[LogRule, ...] = ()
    queue: str = ""
    """Kueue's queue. Default: none."""
    priority: str = ""
    """Kueue's priority class. Default: that of the pods."""
    is_suspended: bool = False
    is_deleted: bool = False
    ttl_s: float | None = None
    """From the end to the deletion of the job. Default: it is kept."""
    generation: int = 1
    status: Status = field(default_factory=Status)

    @property
    def shape(self) -> str:
        """Digest of everything that all pods of a run have in common, and that cannot change while they run."""
        common = [self.nodes.launchers, self.nodes.spares, self.nodes.sizes, self.processes, self.template]
        common += [self.queue] if self.queue else []
        return hashlib.sha256(json.dumps(common, sort_keys=True).encode()).hexdigest()[:16]
