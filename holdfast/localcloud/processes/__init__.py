"""Processes of a local cloud: start detached, find by record, stop, report."""

from holdfast.localcloud.processes.detached import Process, find, has_died, stop
from holdfast.localcloud.processes.holding import HeldError, Holder, hold, holder_of, is_going
from holdfast.localcloud.processes.kept import KeptProcess
from holdfast.localcloud.processes.local_cloud import LocalCloud, from_environment
from holdfast.localcloud.processes.monitoring import start_monitor
from holdfast.localcloud.processes.spawning import ProcessError, WorkDone, spawn, start, wait_until_ready
from holdfast.localcloud.processes.state import ProcessState, control_plane, process_state

__all__ = [
    "HeldError",
    "Holder",
    "KeptProcess",
    "LocalCloud",
    "Process",
    "ProcessError",
    "ProcessState",
    "WorkDone",
    "control_plane",
    "find",
    "from_environment",
    "has_died",
    "hold",
    "holder_of",
    "is_going",
    "process_state",
    "spawn",
    "start",
    "start_monitor",
    "stop",
    "wait_until_ready",
]
