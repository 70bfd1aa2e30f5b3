"""
The service: one process for all runs, with a bound on everything that a stranger could make it keep or wait for.

A line is read only when its sender may send it: before a launcher is admitted no line is longer than a handshake.
"""

import asyncio
import hmac
import secrets
import socket
import sys
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from holdfast_runtime import membership
from holdfast_runtime.control import MessageError
from holdfast_runtime.witness.records import Limits, Record, Records
from holdfast_runtime.witness.wire import (
    BEAT,
    HANDSHAKE,
    WITNESS,
    Beat,
    Challenge,
    Goodbye,
    Handshake,
    Join,
    Open,
    Refused,
    SeatGranted,
    proof,
)

HANDSHAKE_BYTES = 4096
SWEEP_S = 1.0
NAME_LETTERS = 64
LINES_PER_SWEEP = 20
"""Of its log: strangers cannot fill a disk with it."""


class _ClosedError(Exception):
    """The link ends; the text says why, empty where nobody need know."""


class _Connection(asyncio.Protocol):
    def __init__(self, service: "Service") -> None:
        self._service = service
        self._pending = bytearray()
        self._nonce = secrets.token_hex(16)
        self.record: Record | None = None
        self.host = ""
        self.began_s = self.heard_s = time.monotonic()
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self.host = str(transport.get_extra_info("peername")[0])
        if not self._service.admits(self):
            self.tell(Refused("this witness has as many links as it may have"))
            self.close()
            return
        connection = transport.get_extra_info("socket")
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.tell(Challenge(nonce=self._nonce))

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - asyncio calls it so
        self._service.gone(self)

    def data_received(self, data: bytes) -> None:
        self.heard_s = time.monotonic()
        self._pending += data
        try:
            while (end := self._pending.find(b"\n")) >= 0:
                line = bytes(self._pending[:end])
                del self._pending[: end + 1]
                self._read(line)
            self._check(len(self._pending))
        except (_ClosedError, MessageError, ValueError, RecursionError) as error:
            if str(error):
                self._service.say(f"{self.host}: {error}")
            self.close()

    def _check(self, size: int) -> None:
        allowed = HANDSHAKE_BYTES if self.record is None else self._service.limits.line_bytes
        if size > allowed:
            raise _ClosedError(f"a line of {size} bytes or more; allowed: {allowed}")

    def _read(self, line: bytes) -> None:
        self._check(len(line))
        if self.record is None:
            self.record = self._admitted(HANDSHAKE.decode(line))
            return
        message = WITNESS.decode(line)
        if isinstance(message, Goodbye):
            self.record.parted = True
        elif isinstance(message, Beat):
            self.write(BEAT)
        else:
            self._service.heard(self, self.record, message, size=len(line))

    def _admitted(self, asked: Handshake) -> Record:
        if isinstance(asked, Open):
            record = self._service.open(asked)
            if record is None:
                self.tell(Refused("this witness serves as many runs as it may"))
                raise _ClosedError(f"no room for run {asked.run_id[:NAME_LETTERS]!r}")
        elif isinstance(asked, Join):
            found = self._service.records.find(asked.identity)
            if found is None:
                self.tell(Refused("it remembers nothing of this run", unknown=True))
                raise _ClosedError
            expected = proof("join", found.key, identity=asked.identity, nonce=self._nonce)
            if not hmac.compare_digest(asked.proof.encode(), expected.encode()):
                self.tell(Refused("the run token differs"))
                raise _ClosedError(f"run {found.run_id!r}: a launcher with another token is refused")
            record = found
        else:
            raise _ClosedError("a handshake begins with open or join")
        identity = record.witness.identity
        self.tell(SeatGranted(identity, proof("seated", record.key, identity=identity, nonce=asked.nonce)))
        record.links += 1
        return record

    def tell(self, message: Handshake) -> None:
        self.write(HANDSHAKE.encode(message) + b"\n")

    def write(self, line: bytes) -> None:
        if self._transport is None or self._transport.is_closing():
            return
        self._transport.write(line)
        if self._transport.get_write_buffer_size() > self._service.limits.unsent_bytes:
            self._transport.abort()

    def close(self) -> None:
        if self._transport is not None:
            self._transport.close()

    def abort(self) -> None:
        if self._transport is not None:
            self._transport.abort()


@dataclass
class Service:
    """A witness."""

    limits: Limits = field(default_factory=Limits)
    on_sweep: Callable[[], None] = lambda: None
    """Called about once a second, as long as it answers."""

    def __post_init__(self) -> None:
        self.records = Records(self.limits)
        self._connections: set[_Connection] = set()
        self._hosts: Counter[str] = Counter()
        self._lines = 0

    async def serve(self, door: socket.socket) -> None:
        server = await asyncio.get_running_loop().create_server(lambda: _Connection(self), sock=door)
        try:
            while True:
                self.sweep(now_s=time.monotonic())
                self.on_sweep()
                await asyncio.sleep(SWEEP_S)
        finally:
            server.close()
            for connection in [*self._connections]:
                connection.abort()

    def sweep(self, *, now_s: float) -> None:
        self._lines = 0
        for connection in [*self._connections]:
            waited_s, limit_s = now_s - connection.heard_s, self.limits.silence_s
            if connection.record is None:
                waited_s, limit_s = now_s - connection.began_s, self.limits.admission_s
            if waited_s > limit_s:
                connection.abort()
        self.records.sweep(now_s=now_s)

    def say(self, text: str) -> None:
        self._lines += 1
        if self._lines <= LINES_PER_SWEEP:
            print(f"holdfast-witness: {text}", file=sys.stderr, flush=True)

    def admits(self, connection: _Connection) -> bool:
        self._connections.add(connection)
        self._hosts[connection.host] += 1
        return (
            len(self._connections) <= self.limits.links and self._hosts[connection.host] <= self.limits.links_per_host
        )

    def gone(self, connection: _Connection) -> None:
        self._connections.discard(connection)
        self._hosts[connection.host] -= 1
        if not self._hosts[connection.host]:
            del self._hosts[connection.host]
        if connection.record is not None:
            self.records.left(connection.record, now_s=time.monotonic())

    def open(self, asked: Open) -> Record | None:
        name = asked.run_id[:NAME_LETTERS]
        record = self.records.open(run_id=name, seat=asked.seat, key=asked.key, now_s=time.monotonic())
        if record is not None:
            self.say(f"run {name!r}: registered ({len(self.records)} runs)")
        return record

    def heard(self, sender: _Connection, record: Record, message: membership.Message, *, size: int) -> None:
        reply, changed = self.records.hear(record, message, size=size)
        if reply is not None:
            sender.write(WITNESS.encode(reply) + b"\n")
        if not changed:
            return
        commit = WITNESS.encode(membership.Commit(record.witness.committed)) + b"\n"
        for other in self._connections:
            if other.record is record and other is not sender:
                other.write(commit)
