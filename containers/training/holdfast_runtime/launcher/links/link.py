"""One connection to another launcher, after the handshake. The thread that works writes to it, and one that beats."""

import asyncio
import contextlib
import os
import socket
import threading
from dataclasses import dataclass, field

from holdfast_runtime.launcher.links.seal import SealedLine
from holdfast_runtime.launcher.links.watching import lateness_s
from holdfast_runtime.launcher.links.wire import LINK, Beat, Hello

BEAT = LINK.encode(Beat())


@dataclass
class Link:
    peer: Hello
    writer: asyncio.StreamWriter
    sealed: SealedLine
    call: int = 0
    """The caller's number of it."""
    heard_s: float = 0.0
    has_received: bool = False
    """A line was received after the handshake. Both sides send their members at once; one that sends nothing has given
    up the handshake."""
    late_s: float = 0.0
    """Lateness of recent heartbeats, where they are requested."""
    watched: bool = False
    """This launcher requests heartbeats."""
    watches: bool = False
    """The peer requests them."""
    suspected: bool = False
    """It was silent for too long at the last check."""
    silent: str = ""
    """Reason for its end, where the peer sent no heartbeat."""
    replaced: bool = False
    """Another link counts, or none: lines are still read, and none is sent."""
    needed: bool = True
    """The peer reports that it needs the connection."""
    ended: asyncio.Event = field(default_factory=asyncio.Event)
    _turn: threading.Lock = field(default_factory=threading.Lock)
    """Lines are numbered, so they have to be written in the order in which they are sealed."""
    _socket: int = -1
    """The connection's, for beats: the event loop may close its own at any time."""
    _rest: bytes = b""
    """Of a beat that the kernel took a part of."""
    _finished: bool = False

    def open(self) -> None:
        """Lines go out at once, and beats can be given. Raises OSError where it is closed already."""
        connection = self.writer.get_extra_info("socket")
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        with self._turn:
            self._socket = os.dup(connection.fileno())

    def close(self) -> None:
        with self._turn:
            if self._socket >= 0:
                os.close(self._socket)
            self._socket = -1
        self.ended.set()

    def hear(self, now_s: float, *, beat_s: float) -> None:
        if self.watched:
            silent_s = now_s - self.heard_s
            self.late_s = lateness_s(self.late_s, late_s=silent_s - beat_s, beats=silent_s / beat_s)
        self.heard_s, self.has_received = now_s, True

    def write(self, line: bytes) -> None:
        """Send a line, from the thread that works; nothing after ``finish``."""
        if self._finished:
            return
        with self._turn:
            rest, self._rest = self._rest, b""
            self.writer.write(rest + self.sealed.seal(line))

    def beat(self) -> None:
        """Send a heartbeat, from any thread, without waiting. Data that is still to be sent counts as one."""
        with self._turn:
            if self._socket < 0 or self.replaced or self.writer.transport.get_write_buffer_size():
                return
            self._rest = self._rest or self.sealed.seal(BEAT)
            with contextlib.suppress(OSError):  # a full or broken connection: who reads it finds out
                self._rest = self._rest[os.write(self._socket, self._rest) :]

    def finish(self) -> None:
        self._finished = True
        with contextlib.suppress(OSError):
            self.writer.write_eof()

    def end(self, why: str) -> None:
        self.silent = self.silent or why
        self.writer.transport.abort()
