import json
import socket
from pathlib import Path
from typing import Any

ANSWERS_WITHIN_S = 2.0


def ask_status(path: Path, *, timeout_s: float = ANSWERS_WITHIN_S) -> "dict[str, Any]":
    """Status of the running agent; raises OSError without one, ValueError for an invalid response."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as asking:
        asking.settimeout(timeout_s)
        asking.connect(str(path))
        parts = []
        while part := asking.recv(1 << 16):
            parts.append(part)
    answer = json.loads(b"".join(parts))
    if not isinstance(answer, dict):
        raise ValueError("the agent's response is not a JSON object")  # noqa: TRY004
    return answer
