from dataclasses import dataclass

SCHEDULABLE = "Schedulable"
"""HyperPod's value of the health label for a node that takes pods."""


@dataclass(frozen=True, kw_only=True)
class PodFacts:
    index: int
    """Node rank of its launcher."""
    uid: str
    phase: str
    """Kubernetes' phase, and the launcher's end where other containers still run."""
    lingers: bool = False
    """The launcher has ended and other containers still run."""
    shape: str = ""
    """Of the job when the pod was created."""
    node: str = ""
    is_deleted: bool = False
    created_s: float | None = None
    started_s: float | None = None
    """Start of its first container."""
    ended_s: float | None = None
    """End of its first container."""
    exit_code: int | None = None
    """Of its first container."""
    reason: str = ""
    """Such as Evicted (the pod's) or OOMKilled (the container's)."""
    message: str = ""
    """Last lines of the first container that failed."""
    waiting: str = ""
    """Reason for not running, such as ImagePullBackOff or Unschedulable."""

    @property
    def runs(self) -> bool:
        return self.phase == "Running" and not self.is_deleted


@dataclass(frozen=True, kw_only=True)
class NodeFacts:
    health: str = SCHEDULABLE
    is_ready: bool = True

    @property
    def is_healthy(self) -> bool:
        return self.health == SCHEDULABLE
