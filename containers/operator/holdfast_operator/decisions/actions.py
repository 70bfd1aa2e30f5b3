from dataclasses import dataclass

from holdfast_operator.jobs import Status


@dataclass(frozen=True, kw_only=True)
class CreatePod:
    index: int
    excluded: tuple[str, ...] = ()
    """Nodes that it must not run on."""


@dataclass(frozen=True, kw_only=True)
class DeletePod:
    """Delete the pod of this UID only; SIGTERM is the launcher's notice to hand its ranks over."""

    index: int
    uid: str
    why: str
    is_forced: bool = False
    """Without the kubelet's confirmation, since its node does not exist any more."""
    excluded: str = ""
    """Node that gets no pod of the job any more."""


@dataclass(frozen=True, kw_only=True)
class DeleteJob:
    why: str


Action = CreatePod | DeletePod | DeleteJob


@dataclass(frozen=True, kw_only=True)
class Decision:
    status: Status
    actions: tuple[Action, ...] = ()
