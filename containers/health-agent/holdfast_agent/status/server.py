"""Server of the status socket; answers without polling a detector."""

import json
import os
import socket
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

LONGEST_ANSWER = 1 << 20


class StatusSocket:
    """Sends the JSON object that ``answer()`` returns to each connection; the socket is for root alone."""

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
        return self._listening.fileno()

    def serve(self) -> None:
        """Answer pending clients; does not wait for slow ones."""
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
        self._listening.close()
        self._path.unlink(missing_ok=True)
