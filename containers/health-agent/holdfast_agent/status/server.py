"""The socket that ``status`` asks: the answer is what is known, and no detector is asked for it."""

import json
import os
import socket
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

LONGEST_ANSWER = 1 << 20


class StatusSocket:
    """
    Whoever connects gets one JSON object, at once.

    Args:
        path: Of the socket, for root alone.
        answer: What there is to tell.
    """

    def __init__(self, *, path: Path, answer: "Callable[[], dict[str, Any]]") -> None:
        self._answer = answer
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.exists() and stat.S_ISSOCK(path.stat().st_mode):
            path.unlink()  # of an agent that was killed; a running one holds the lock
        self._listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC | socket.SOCK_NONBLOCK)
        before = os.umask(0o177)
        try:
            self._listening.bind(str(path))
        finally:
            os.umask(before)
        self._listening.listen(16)
        self._path = path

    def fileno(self) -> int:
        """Readable when somebody asks."""
        return self._listening.fileno()

    def serve(self) -> None:
        """Answer who waits; who does not read is not waited for."""
        while True:
            try:
                asking, _ = self._listening.accept()
            except OSError:
                return
            with asking:
                data = json.dumps(self._answer()).encode()
                asking.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, LONGEST_ANSWER)
                asking.settimeout(0.0)
                try:
                    asking.send(data)
                except OSError:
                    continue

    def close(self) -> None:
        """Take the socket away."""
        self._listening.close()
        self._path.unlink(missing_ok=True)
