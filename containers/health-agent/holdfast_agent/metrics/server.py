"""
Scrape endpoint: one path, protected by a token.

One thread serves several clients (``Callers``), so a slow one does not delay others.
"""

import hmac
import os
import secrets
import socket
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Optional

from holdfast_agent.metrics.callers import Callers
from holdfast_agent.metrics.text import CONTENT_TYPE, exposition
from holdfast_agent.signals import Numbers

PATH = "/metrics"
_LOOK_S = 5.0


def read_token(path: Path) -> str:
    """Read the token at ``path``, which only its owner can read; create it where missing."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with suppress(FileExistsError):
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with os.fdopen(descriptor, "w") as made:
            made.write(secrets.token_urlsafe(32) + "\n")
    return path.read_text("ascii").strip()


class MetricsServer:
    """Serves ``numbers()``, called in its thread, to bearers of ``token``; port 0 is a free one."""

    name, problem = "serving of metrics", ""

    def __init__(self, *, address: str, port: int, token: str, numbers: "Callable[[], Numbers]") -> None:
        if not token:
            raise ValueError("metrics.token_path: got an empty token; allowed: a file with a text of its own")
        self._token, self._numbers = token, numbers
        self._listening = socket.create_server((address, port))
        self.port: int = self._listening.getsockname()[1]
        self._stopping = threading.Event()
        self._served = self._refused = 0
        self._thread = threading.Thread(target=self._run, name="metrics", daemon=True)

    @property
    def state(self) -> Optional[str]:
        """Reason why it does not serve; "" where it does, None before the start."""
        if self._thread.ident is None:
            return None
        return "" if self._thread.is_alive() else "thread has exited"

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stopping.set()
        with suppress(OSError):  # wakes the thread, which waits for a caller
            self._listening.shutdown(socket.SHUT_RDWR)
        if self._thread.is_alive():
            self._thread.join(5.0)
        self._listening.close()

    def numbers(self) -> "Mapping[str, float]":
        return {"scrapes_total": float(self._served), "scrapes_refused_total": float(self._refused)}

    def _run(self) -> None:
        callers = Callers(self._listening, answer=self._answer)
        while not self._stopping.is_set():
            callers.serve(_LOOK_S)
        callers.close()

    def _answer(self, request: bytes) -> bytes:
        first, _, rest = request.partition(b"\r\n")
        method, _, target = first.decode("latin-1").partition(" ")
        path = target.partition(" ")[0].partition("?")[0]
        given = b""
        for line in rest.split(b"\r\n"):
            name, _, value = line.partition(b":")
            if name.strip().lower() == b"authorization":
                given = value.strip()
        if not hmac.compare_digest(given, b"Bearer " + self._token.encode()):
            self._refused += 1
            return _response("401 Unauthorized", b"", "WWW-Authenticate: Bearer\r\n")
        if method not in ("GET", "HEAD") or path != PATH:
            return _response("404 Not Found", b"")
        self._served += 1
        body = exposition(self._numbers()).encode()
        return _response("200 OK", b"" if method == "HEAD" else body, f"Content-Type: {CONTENT_TYPE}\r\n")


def _response(status: str, body: bytes, headers: str = "") -> bytes:
    head = f"HTTP/1.1 {status}\r\n{headers}Content-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    return head.encode("latin-1") + body
