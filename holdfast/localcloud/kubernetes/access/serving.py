"""What both servers of the room stand on: an HTTP server on a socket that was made elsewhere, with bounded threads."""

import contextlib
import http.server
import socket
import threading
from collections.abc import Callable
from typing import Any

MOST_CONNECTIONS = 64


class Bounded(http.server.ThreadingHTTPServer):
    """A thread for each connection, and none for those beyond the bound: they are closed."""

    daemon_threads = True
    passed: Callable[[], None] = staticmethod(lambda: None)

    def __init__(self, listener: socket.socket, handler: Any) -> None:
        super().__init__(("", 0), handler, bind_and_activate=False)
        self.socket.close()
        self.socket = listener
        self._room = threading.BoundedSemaphore(MOST_CONNECTIONS)

    def service_actions(self) -> None:
        """Called twice a second by ``serve_forever``."""
        self.passed()

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
