"""
The processes of a local cloud: started detached, found by their records, ended, and told of (`LocalCloud`,
`from_environment`, `process_state`). What runs in them is for aws and hyperpod.
"""

from holdfast.localcloud.processes.detached import Process, ProcessError, Work, find, has_died, start, stop
from holdfast.localcloud.processes.local_cloud import LocalCloud, from_environment
from holdfast.localcloud.processes.state import ProcessState, control_plane, process_state

__all__ = [
    "LocalCloud",
    "Process",
    "ProcessError",
    "ProcessState",
    "Work",
    "control_plane",
    "find",
    "from_environment",
    "has_died",
    "process_state",
    "start",
    "stop",
]
