"""Node of a session, as the agent sees it."""

import socket
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import IO, Protocol

from holdfast.localcloud.aws.common import ServiceError

Stream = int | IO[bytes] | None


class Machine(Protocol):
    def popen(
        self,
        argv: Sequence[str],
        *,
        env: Mapping[str, str] | None = None,
        stdin: Stream = None,
        stdout: Stream = None,
        stderr: Stream = None,
    ) -> "subprocess.Popen[bytes]":
        """Start a program as root in a process group of its own."""

    def terminal(self) -> tuple[int, int]:
        """Return descriptors of a new terminal: master and slave."""

    def connect(self, port: int) -> socket.socket:
        """Connect to a port of the node's loopback interface. Raises: OSError."""


EnterNode = Callable[[str], Machine]
"""From an instance id; raises ServiceError (TargetNotConnected)."""


def enter_local_node(home: Path, instance_id: str) -> Machine:
    """Return the node of a local HyperPod. Raises: ServiceError: it does not run."""
    from holdfast.localcloud.nodes import Fleet, NodeError

    try:
        node = Fleet(home=home).node(instance_id)
        alive = node.alive()
    except (NodeError, OSError) as error:
        raise ServiceError("TargetNotConnected", f"{instance_id} is not connected: {error}") from None
    if not alive:
        raise ServiceError("TargetNotConnected", f"{instance_id} is not connected.")
    return node
