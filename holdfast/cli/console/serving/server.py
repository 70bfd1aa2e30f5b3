"""
HTTP server of the console on loopback, in threads: Werkzeug's, which also serves the embedded AWS.

Other users of the machine can connect. A connection without the secret has a deadline, and the oldest of these goes
when there are too many.
"""

import contextlib
import socket
import threading
import time
from typing import Any

from werkzeug.serving import ThreadedWSGIServer, WSGIRequestHandler

from holdfast.cli.terminal import CommandError

MOST_CONNECTIONS = 64
HEAD_S = 10.0
"""For the head of a request, and longest wait for a page that does not read."""


class ConsoleServer(ThreadedWSGIServer):
    daemon_threads = True

    def __init__(self, listener: socket.socket, application: Any) -> None:
        host, port = listener.getsockname()[:2]
        super().__init__(host, port, application, _Handler, fd=listener.fileno())
        self._guard = threading.Lock()
        self._strangers: dict[Any, float] = {}
        """Connections without the secret so far -> their deadline."""

    def process_request(self, request: Any, client_address: Any) -> None:
        with self._guard:
            full = len(self._strangers) >= MOST_CONNECTIONS
            oldest = next(iter(self._strangers)) if full else None
            self._strangers.pop(oldest, None)
            self._strangers[request] = time.monotonic() + HEAD_S
        if oldest is not None:
            _shut_down(oldest)
        super().process_request(request, client_address)

    def admitted(self, request: Any) -> None:
        with self._guard:
            self._strangers.pop(request, None)

    def shutdown_request(self, request: Any) -> None:
        self.admitted(request)
        super().shutdown_request(request)

    def service_actions(self) -> None:
        """Drop late connections; called twice a second."""
        super().service_actions()
        with self._guard:
            late = [one for one, until in self._strangers.items() if until < time.monotonic()]
            for one in late:
                del self._strangers[one]
        for one in late:
            _shut_down(one)


class _Handler(WSGIRequestHandler):
    timeout = HEAD_S
    server_version, sys_version = "holdfast", ""

    def make_environ(self) -> dict[str, Any]:
        assert isinstance(self.server, ConsoleServer)
        server = self.server
        return {**super().make_environ(), "holdfast.admitted": lambda: server.admitted(self.connection)}

    def version_string(self) -> str:
        return self.server_version

    def log(self, type: str, message: str, *args: Any) -> None:  # noqa: A002, ARG002 - the name is werkzeug's
        return


def listen(port: int) -> socket.socket:
    """Listen on loopback; port 0 picks one. Raises: CommandError: the port is in use, or is not for this user."""
    try:
        return socket.create_server(("127.0.0.1", port))
    except OSError as error:
        raise CommandError(
            f"got --port {port}: {error.strerror or error}; allowed: a free port, or 0, which picks one"
        ) from None


def _shut_down(connection: Any) -> None:
    with contextlib.suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)
