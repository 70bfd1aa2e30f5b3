"""
Data of ``holdfast-run status``: sockets of this node's launchers, and pending waits.
"""

from holdfast_runtime.launcher.asking.sockets import (
    ask_socket,
    default_job,
    find_sockets,
    folders,
    peer_uid,
    searched,
)
from holdfast_runtime.launcher.asking.waits import Situation, spare_of, waits_for

__all__ = [
    "Situation",
    "ask_socket",
    "default_job",
    "find_sockets",
    "folders",
    "peer_uid",
    "searched",
    "spare_of",
    "waits_for",
]
