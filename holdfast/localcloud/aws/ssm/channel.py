"""
Data channel of a session: WebSocket on the connection of an HTTP request of the embedded AWS.

Not signed, as on AWS: the first message has the token of StartSession or ResumeSession.
"""

import contextlib
import logging
import queue
import select
import socket
import threading
import time
from typing import TYPE_CHECKING

from websockets.frames import Frame, Opcode
from websockets.http11 import Request
from websockets.protocol import State
from websockets.server import ServerProtocol

from holdfast.localcloud.aws.ssm.sessions import Sessions
from holdfast.session_manager import MOST_BYTES, MessageError, OpenDataChannel

if TYPE_CHECKING:
    from _typeshed.wsgi import WSGIEnvironment

log = logging.getLogger(__name__)

CHANNEL_PATH = "/v1/data-channel/"
TOKEN_WITHIN_S = 15.0
CLOSE_S = 2.0
STEP = 1 << 16
_END = b""
_REFUSED, _BAD = 1008, 1002
"""Close codes (RFC 6455): policy violation, protocol error."""


class Line:
    """
    One WebSocket connection. ``send`` and ``close`` from any thread, ``receive`` from one.

    A thread of its own writes, so that a client that does not read holds up nobody else.
    """

    def __init__(self, connection: socket.socket, head: bytes) -> None:
        self._connection = connection
        self._connection.settimeout(None)
        # An acknowledgement before an echo would hold it up for 40 ms.
        self._connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._lock = threading.Lock()
        self._unwritten: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        self._protocol = ServerProtocol(max_size=MOST_BYTES)
        self._protocol.receive_data(head)
        requests = [one for one in self._protocol.events_received() if isinstance(one, Request)]
        if requests:
            self._protocol.send_response(self._protocol.accept(requests[0]))
        self.is_open = self._protocol.state is State.OPEN
        self._writer = threading.Thread(target=self._write, name="data channel", daemon=True)
        self._writer.start()
        self._flush()

    def send(self, data: bytes) -> None:
        """Send a binary message, or nothing on a closed connection."""
        with self._lock:
            if self._protocol.state is State.OPEN:
                self._protocol.send_binary(data)
                self._flush()

    def close(self, code: int = 1000, reason: str = "") -> None:
        with self._lock:
            if self._protocol.state is State.OPEN:
                self._protocol.send_close(code, reason)
                self._flush()

    def end(self) -> None:
        """Write what is left, within ``CLOSE_S``, and end the connection."""
        self._unwritten.put(_END)
        self._writer.join(CLOSE_S)
        with contextlib.suppress(OSError):
            self._connection.shutdown(socket.SHUT_RDWR)

    def receive(self, *, until_s: float | None = None) -> list[bytes] | None:
        """Return the next messages; None at the end, or after ``until_s``. Raises: MessageError."""
        found: list[bytes] = []
        while not found:
            if until_s is not None and not self._readable(until_s - time.monotonic()):
                return None
            try:
                data = self._connection.recv(STEP)
            except OSError:
                return None
            with self._lock:
                if data:
                    self._protocol.receive_data(data)
                else:
                    self._protocol.receive_eof()
                self._flush()
                found = self._messages()
            if not found and (not data or self._protocol.state is not State.OPEN):
                return None
        return found

    def _messages(self) -> list[bytes]:
        found = []
        for frame in self._protocol.events_received():
            if isinstance(frame, Frame) and frame.opcode in (Opcode.CONT, Opcode.TEXT, Opcode.BINARY):
                if not frame.fin or frame.opcode == Opcode.CONT:
                    raise MessageError("got a message in parts; allowed: one frame for each")
                found.append(bytes(frame.data))
        return found

    def _flush(self) -> None:
        for data in self._protocol.data_to_send():
            if data:
                self._unwritten.put(data)

    def _write(self) -> None:
        with contextlib.suppress(OSError):
            while data := self._unwritten.get():
                self._connection.sendall(data)

    def _readable(self, timeout_s: float) -> bool:
        poll = select.poll()
        poll.register(self._connection, select.POLLIN)
        return bool(poll.poll(max(timeout_s, 0) * 1000))


def serve_channel(environ: "WSGIEnvironment", sessions: Sessions) -> None:
    """Serve one connection to its end, on the socket of the request."""
    connection: socket.socket = environ["werkzeug.socket"]
    line = Line(connection, _head(environ))
    try:
        if line.is_open:
            _serve(line, session_id=str(environ["PATH_INFO"]).removeprefix(CHANNEL_PATH), sessions=sessions)
    finally:
        line.end()


def _serve(line: Line, *, session_id: str, sessions: Sessions) -> None:
    try:
        first = line.receive(until_s=time.monotonic() + TOKEN_WITHIN_S)
        if not first:
            line.close(_REFUSED, "no token in time")
            return
        opening = OpenDataChannel.decode(first[0])
        agent = sessions.admit(session_id, opening.token)
        if agent is None:
            line.close(_REFUSED, "invalid token")
            return
        agent.attach(line)
        try:
            for raw in first[1:]:
                agent.receive(raw)
            while (messages := line.receive()) is not None:
                for raw in messages:
                    agent.receive(raw)
        finally:
            agent.detach(line)
    except MessageError as error:
        log.info("session %s: refused a message: %s", session_id, error)
        line.close(_BAD, str(error)[:100])


def _head(environ: "WSGIEnvironment") -> bytes:
    """Return the request's head again, of which only the headers of a WebSocket matter."""
    names = ("HOST", "UPGRADE", "CONNECTION", "SEC_WEBSOCKET_KEY", "SEC_WEBSOCKET_VERSION")
    lines = [f"{name.replace('_', '-')}: {environ.get(f'HTTP_{name}', '')}" for name in names]
    return "\r\n".join([f"{environ['REQUEST_METHOD']} {CHANNEL_PATH} HTTP/1.1", *lines, "", ""]).encode("latin-1")
