"""Requests to the process that forks."""

import ctypes
import json
import signal
from dataclasses import asdict, dataclass

PR_SET_PDEATHSIG = 1
BEGIN = b"!"
"""First line of the launcher on the control socket: the forked process is registered, and may run."""


@dataclass(frozen=True, kw_only=True)
class Request:
    """A process to fork. Its descriptors come with the message: control socket, standard output and error."""

    environment: dict[str, str]
    arguments: tuple[str, ...]
    module: bool

    def to_json(self) -> bytes:
        return json.dumps(asdict(self)).encode()

    @staticmethod
    def from_json(data: bytes) -> "Request":
        values = json.loads(data)
        return Request(**{**values, "arguments": tuple(values["arguments"])})


def die_with_parent() -> None:
    ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
