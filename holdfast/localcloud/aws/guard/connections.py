"""
Limits of connections: their number, and the time for a request.

Werkzeug closes a connection after each request, so a thread is a request. When there are too many, the oldest
incomplete request is dropped; one that is being answered stays.
"""

import contextlib
import socket
import threading
import time
from typing import Any

from moto.moto_server.werkzeug_app import MotoRequestHandler
from werkzeug.serving import ThreadedWSGIServer

MOST_CONNECTIONS = 128
FOR_HEALTH = 8
"""Extra connections for health requests when all others are in use."""
HEAD_S = 15.0
BODY_S = 300.0
SILENT_S = 30.0
"""Between two reads or writes of one connection."""
DRAINED = 1 << 20
FULL = b"HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"


class BoundedServer(ThreadedWSGIServer):
    def __init__(self, host: str, port: int, app: Any, *, fd: int) -> None:
        super().__init__(host, port, app, GuardedHandler, fd=fd)
        self._guard = threading.Lock()
        self._waiting: dict[socket.socket, float] = {}
        """Connections with an incomplete request -> their deadline."""
        self._open: set[socket.socket] = set()
        self._beyond: set[socket.socket] = set()
        """Connections beyond the limit, for health requests only."""

    def process_request(self, request: Any, client_address: Any) -> None:
        """Accept a connection; at the limit, drop the one that is most behind."""
        with self._guard:
            full = len(self._open) >= MOST_CONNECTIONS
            behind = min(self._waiting, key=self._waiting.__getitem__, default=None) if full else None
            if behind is not None:
                del self._waiting[behind]
                self._open.discard(behind)
            room = len(self._open) < MOST_CONNECTIONS + FOR_HEALTH
            if room:
                if len(self._open) >= MOST_CONNECTIONS:
                    self._beyond.add(request)
                self._open.add(request)
                self._waiting[request] = time.monotonic() + HEAD_S
        if behind is not None:
            _shut_down(behind)
        if room:
            super().process_request(request, client_address)
            return
        with contextlib.suppress(OSError):
            request.settimeout(0.1)
            request.sendall(FULL)
        self.shutdown_request(request)

    def shutdown_request(self, request: Any) -> None:
        with self._guard:
            self._open.discard(request)
            self._beyond.discard(request)
            self._waiting.pop(request, None)
        super().shutdown_request(request)

    def service_actions(self) -> None:
        """Drop late connections; called at least ten times a second."""
        super().service_actions()
        now = time.monotonic()
        with self._guard:
            late = [one for one, until in self._waiting.items() if until < now]
            for one in late:
                del self._waiting[one]
        for one in late:
            _shut_down(one)

    def is_full(self, connection: socket.socket) -> bool:
        """Return True if only health requests may be answered."""
        with self._guard:
            return connection in self._beyond

    def known(self, connection: socket.socket) -> None:
        """Give a caller with a key the time for a large body."""
        with self._guard:
            if connection in self._waiting:
                self._waiting[connection] = time.monotonic() + BODY_S

    def received(self, connection: socket.socket) -> None:
        with self._guard:
            self._waiting.pop(connection, None)


class GuardedHandler(MotoRequestHandler):
    """HTTP handler without log; the front logs."""

    timeout = SILENT_S

    def make_environ(self) -> dict[str, Any]:
        environ = super().make_environ()
        # Chunks are decoded by the guard: werkzeug's decoder believes their lengths.
        environ["wsgi.input"] = self.rfile
        environ["holdfast.full"] = self._server.is_full(self.connection)
        environ["holdfast.known"] = lambda: self._server.known(self.connection)
        environ["holdfast.received"] = lambda: self._server.received(self.connection)
        self.rfile = _Rest(self.rfile)  # type: ignore[assignment]
        return environ

    def connection_dropped(self, error: BaseException, environ: Any = None) -> None:
        """End a connection that was lost, or used for something else than an answer."""
        self.close_connection = True
        super().connection_dropped(error, environ)

    @property
    def _server(self) -> BoundedServer:
        assert isinstance(self.server, BoundedServer)
        return self.server

    def log(self, type: str, message: str, *args: Any) -> None:  # noqa: A002, ARG002 - the name is werkzeug's
        return


class _Rest:
    """Discards a bounded rest of the request, so that the caller reads the answer."""

    def __init__(self, source: Any) -> None:
        self._source = source
        self._left = DRAINED

    def read(self, _size: int = -1) -> bytes:
        data: bytes = self._source.read1(min(65536, self._left)) if self._left else b""
        self._left -= len(data)
        return data

    def close(self) -> None:
        self._source.close()

    @property
    def closed(self) -> bool:
        return bool(self._source.closed)


def _shut_down(connection: socket.socket) -> None:
    with contextlib.suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)
