import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace

MOST_XID = 999
BURST = 672
"""Xid 45 as often as a public report has it: 77 healthy nodes were flagged for it."""
_XID = re.compile(r"xid-([1-9][0-9]{0,2})")


class FaultError(ValueError):
    """No such fault, or not with these options; the message has the fix."""


@dataclass(frozen=True, kw_only=True)
class Fault:
    name: str
    what: str
    """Effect, for people."""
    lasts: bool
    """True if it lasts until its time or its node ends; else it is momentary, like a log line."""
    needs_gpus: bool = False
    xid: int = 0
    """The Xid of its line; 0: none, or not only one."""


_ALL = (
    Fault(name="xid-N", what="Xid N in the kernel log, of one of the node's GPUs (any N from 1 to 999)", lasts=False),
    Fault(
        name="clean-up-burst",
        what=f"Xid 45 {BURST} times in the kernel log, as when a job of many processes ends",
        lasts=False,
        xid=45,
    ),
    Fault(
        name="gpu-lost",
        what="a GPU falls off the bus: a kernel message without Xid, and NVML reports the GPU as lost",
        lasts=True,
        needs_gpus=True,
    ),
    Fault(
        name="xid-63-pending",
        what="a row remap of a GPU's memory is pending: Xid 63, and NVML reports it",
        lasts=True,
        needs_gpus=True,
        xid=63,
    ),
    Fault(
        name="remap-failure",
        what="a row remap of a GPU's memory failed: Xid 64, and NVML reports it",
        lasts=True,
        needs_gpus=True,
        xid=64,
    ),
    Fault(
        name="double-bit-error",
        what="an uncorrectable error in a GPU's memory: Xid 48, and NVML counts it",
        lasts=True,
        needs_gpus=True,
        xid=48,
    ),
    Fault(
        name="ecc-rate",
        what="a GPU corrects 100 memory errors a second, as NVML counts them",
        lasts=True,
        needs_gpus=True,
    ),
    Fault(
        name="hung-driver",
        what="the driver does not respond: calls into NVML block, and SIGKILL does not end the caller",
        lasts=True,
        needs_gpus=True,
    ),
    Fault(
        name="stalled-mount",
        what="the shared file system stalls on this node: opens and listings block, other nodes are not affected",
        lasts=True,
    ),
    Fault(name="lossy-link", what="a fifth of the packets to the node are dropped silently", lasts=True),
    Fault(
        name="read-only-disk",
        what="the root disk becomes read-only (EROFS), with the reason in the kernel log",
        lasts=True,
    ),
    Fault(name="disk-full", what="no space is left for the node's logs and files (ENOSPC)", lasts=True),
    Fault(name="oom", what="a program on the node exceeds its memory limit, and the kernel kills it", lasts=False),
    Fault(name="destroy", what="the node is powered off: every process is gone at once", lasts=False),
    Fault(name="freeze", what="every process of the node is stopped; sockets stay open", lasts=True),
    Fault(name="cut", what="the node's network cable is unplugged", lasts=True),
)  # fmt: skip

FAULTS: Mapping[str, Fault] = {fault.name: fault for fault in _ALL}
"""By name; ``xid-N`` stands for all of them."""


def fault_named(name: str) -> Fault:
    """Return the fault of this name, such as ``xid-79``. Raise FaultError."""
    if name in FAULTS and name != "xid-N":
        return FAULTS[name]
    if found := _XID.fullmatch(name):
        code = int(found[1])
        return replace(
            FAULTS["xid-N"], name=name, what=f"Xid {code} in the kernel log, of one of the node's GPUs", xid=code
        )
    raise FaultError(f"got fault {name!r}; allowed: {', '.join(FAULTS)}, with N from 1 to {MOST_XID}")


def names_beginning_with(start: str) -> list[tuple[str, str]]:
    """Return names with descriptions, for shell completion; of Xids the most frequent."""
    common = [fault_named(f"xid-{code}") for code in (13, 31, 43, 45, 48, 63, 64, 74, 79, 94, 95, 109, 119)]
    known = [*(fault for fault in FAULTS.values() if fault.name != "xid-N"), *common]
    return [(fault.name, fault.what) for fault in known if fault.name.startswith(start)]


def seconds_of(fault: Fault, seconds: float | None) -> float | None:
    """Return the duration in seconds; None: until its node ends. Raise FaultError if invalid."""
    if seconds is None:
        return None
    if not fault.lasts:
        raise FaultError(f"{fault.name} is momentary, got --for {seconds:g}; leave --for out")
    if not math.isfinite(seconds) or seconds <= 0:
        raise FaultError(f"got --for {seconds:g}; allowed: a number of seconds above 0")
    return seconds
