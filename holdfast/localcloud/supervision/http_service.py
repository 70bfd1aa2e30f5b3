"""An HTTP server on a socket that was made elsewhere, such as in a node's network: watched, with bounded threads."""

import contextlib
import http.server
import socket
import threading
from typing import Any

from holdfast.localcloud.supervision.worker import Worker

MOST_CONNECTIONS = 64


class HttpService:
    """
    Serves in a thread, plus one per open connection; those beyond the bound are closed.

    Args:
        name: Of its thread.
        listener: Listens already; the service closes it.
        handler: Makes the answers.
    """

    def __init__(
        self, *, name: str, listener: socket.socket, handler: type[http.server.BaseHTTPRequestHandler]
    ) -> None:
        self._stopping = threading.Event()
        self._server = _Server(listener, handler)
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


class _Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    worker: Worker

    def __init__(self, listener: socket.socket, handler: Any) -> None:
        super().__init__(("", 0), handler, bind_and_activate=False)
        self.socket.close()
        self.socket = listener
        self._room = threading.BoundedSemaphore(MOST_CONNECTIONS)

    def service_actions(self) -> None:
        """Called twice a second by ``serve_forever``."""
        self.worker.passed()

    def process_request(self, request: Any, client_address: Any) -> None:
        if not self._room.acquire(blocking=False):
            self.shutdown_request(request)
            return
        try:
            super().process_request(request, client_address)
        except BaseException:
            self._room.release()
            raise

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._room.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A connection that broke is nobody's concern; what handlers cannot do they say themselves."""

    def shutdown_request(self, request: Any) -> None:
        with contextlib.suppress(OSError):
            super().shutdown_request(request)
