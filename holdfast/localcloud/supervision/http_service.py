"""HTTP server on a given socket: supervised, with bounded threads and connections per address."""

import contextlib
import http.server
import logging
import socket
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from holdfast.localcloud.supervision.worker import Worker

MOST_CONNECTIONS = 64
MOST_OF_AN_ADDRESS = 16
REQUEST_S = 10.0
"""From the end of an answer, or the beginning of a connection, until a request is there with all of its headers."""

_log = logging.getLogger(__name__)

_Caller = tuple[Any, ...]
"""Address and port."""


class RequestHandler(http.server.BaseHTTPRequestHandler):
    """Reports to the server when it waits for a request, and when it has one."""

    sys_version = ""
    protocol_version = "HTTP/1.1"
    timeout = 10.0
    server: "_Server"

    def handle_one_request(self) -> None:
        self.server.note(self.client_address, self.connection, waits=True)
        super().handle_one_request()

    def parse_request(self) -> bool:
        parsed = super().parse_request()
        self.server.note(self.client_address, self.connection, waits=False)
        return parsed

    def send(self, status: int, content: bytes, *, kind: str, headers: Mapping[str, str] | None = None) -> None:
        self.send_response(status)
        for name, value in {"Content-Type": kind, "Content-Length": str(len(content)), **(headers or {})}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  the library's name
        _log.debug(format, *args)


class HttpService:
    """HTTP server in a thread, plus one per open connection, bounded; closes its listening socket."""

    def __init__(
        self,
        *,
        name: str,
        listener: socket.socket,
        handler: type[RequestHandler],
        most_of_an_address: int | None = None,
        request_s: float | None = None,
    ) -> None:
        self._stopping = threading.Event()
        self._server = _Server(listener, handler)
        self._server.most_of_an_address = most_of_an_address or MOST_OF_AN_ADDRESS
        self._server.request_s = request_s or REQUEST_S
        self.worker = Worker(name=name, work=self._server.serve_forever, stopping=self._stopping)
        self._server.worker = self.worker

    def start(self) -> None:
        self.worker.start()

    def stop(self) -> None:
        self._stopping.set()
        if self.worker.is_alive:
            self._server.shutdown()
        self._server.server_close()
        self.worker.join(5.0)


@dataclass
class _Connection:
    line: socket.socket
    waits_since_s: float | None
    """None: its request is being answered."""


class _Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    worker: Worker
    most_of_an_address: int
    request_s: float

    def __init__(self, listener: socket.socket, handler: Any) -> None:
        super().__init__(("", 0), handler, bind_and_activate=False)
        self.socket.close()
        self.socket = listener
        self._lock = threading.Lock()
        self._open: dict[_Caller, _Connection] = {}
        """Oldest first."""

    def service_actions(self) -> None:
        self.worker.passed()
        late_s = time.monotonic() - self.request_s
        with self._lock:
            for caller, known in [*self._open.items()]:
                if known.waits_since_s is not None and known.waits_since_s < late_s:
                    self._end(caller)

    def note(self, caller: "_Caller", line: socket.socket, *, waits: bool) -> None:
        """Record that a connection waits, or not. ``line``: its socket; with TLS not the accepted one."""
        with self._lock:
            if caller in self._open:
                self._open[caller] = _Connection(line=line, waits_since_s=time.monotonic() if waits else None)

    def process_request(self, request: Any, client_address: Any) -> None:
        with self._lock:
            has_room = self._make_room(client_address[0])
            if has_room:
                self._open[client_address] = _Connection(line=request, waits_since_s=time.monotonic())
        if not has_room:
            self.shutdown_request(request)
            return
        try:
            super().process_request(request, client_address)
        except BaseException:
            self._forget(client_address)
            raise

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._forget(client_address)

    def _make_room(self, address: str) -> bool:
        """Return True if an address has room, dropping a waiting connection if needed."""
        own = [caller for caller in self._open if caller[0] == address]
        if len(own) >= self.most_of_an_address:
            return self._end_oldest(own)
        return len(self._open) < MOST_CONNECTIONS or self._end_oldest([*self._open])

    def _end_oldest(self, among: "list[_Caller]") -> bool:
        waiting = [one for one in among if self._open[one].waits_since_s is not None]
        for caller in waiting[:1]:
            self._end(caller)
        return bool(waiting)

    def _end(self, caller: "_Caller") -> None:
        line = self._open.pop(caller).line
        with contextlib.suppress(OSError):
            line.shutdown(socket.SHUT_RDWR)

    def _forget(self, caller: "_Caller") -> None:
        with self._lock:
            self._open.pop(caller, None)

    def handle_error(self, request: Any, client_address: Any) -> None: ...

    def shutdown_request(self, request: Any) -> None:
        with contextlib.suppress(OSError):
            super().shutdown_request(request)
