"""
State on a TCP connection: a request, a header, then chunks, each with its length and checksum before it.

All waits end: at the deadline, earlier if nothing moves, and at once if ``check`` raises.
"""

import hashlib
import hmac
import json
import socket
import struct
import time
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

T = TypeVar("T")

CHUNK_BYTES = 1 << 19
"""Little enough to be in the cache of the core still when its checksum is worked out."""
CHUNK = struct.Struct("!II")
"""Length and checksum of a chunk."""
PIECES = 512
"""Of memory in one chunk: the operating system takes 1,024 at once."""
LENGTH = struct.Struct("!I")
OBJECT_BYTES = 1 << 27
NONCE_BYTES = 16
STALL_S = 20.0
"""A connection on which nothing moves for so long is given up: there may be another donor."""
CHECK_EVERY_S = 0.1


class WireError(ConnectionError):
    """The connection ended, or the other side broke the protocol."""


@dataclass(frozen=True, kw_only=True)
class Request:
    """Request of a receiver."""

    generation: int
    step: int
    name: str
    """Which state: ``replica``, or that of a shard."""
    challenge: str = ""
    """Of the receiver: the donor's header has to answer it."""
    proof: str = ""
    """That the receiver belongs to the job."""

    def prove(self, *, token: str, nonce: bytes) -> str:
        text = f"{self.generation} {self.step} {self.name} {self.challenge}".encode()
        return hmac.new(token.encode(), nonce + text, hashlib.sha256).hexdigest()


@dataclass(frozen=True, kw_only=True)
class Header:
    refusal: str = ""
    generation: int = 0
    step: int = 0
    skeleton_bytes: int = 0
    tensors: tuple[tuple[str, tuple[int, ...]], ...] = ()
    """Type and shape of each."""
    proof: str = ""
    """That the donor belongs to the job, and is who was called: who took the port of one that died is not."""

    def prove(self, *, token: str, challenge: str, port: int) -> str:
        members = [challenge, port, self.generation, self.step, self.skeleton_bytes, self.tensors]
        return hmac.new(token.encode(), f"header {json.dumps(members)}".encode(), hashlib.sha256).hexdigest()


class Line:
    """
    One end of a connection.

    Args:
        check: Called before each wait and while it lasts; may raise.
    """

    def __init__(
        self,
        connection: socket.socket,
        *,
        deadline_s: float,
        stall_s: float = STALL_S,
        check: Callable[[], None] = lambda: None,
    ) -> None:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.check = check
        self._socket = connection
        self._end = time.monotonic() + deadline_s
        self._stall_s = stall_s

    def send(self, pieces: Sequence[memoryview | bytes]) -> None:
        """All of it. Raises WireError."""
        pending = [memoryview(piece) for piece in pieces]
        while pending:
            pending = _after(pending, self._wait(partial(self._socket.sendmsg, pending)))

    def read_into(self, pieces: Sequence[memoryview]) -> None:
        """Fill all of it. Raises WireError."""
        pending = list(pieces)
        while pending:
            count = self._wait(partial(self._socket.recvmsg_into, pending))[0]
            if count == 0:
                raise WireError("the connection ended in the middle")
            pending = _after(pending, count)

    def read(self, count: int) -> bytes:
        """So many bytes. Raises WireError."""
        data = bytearray(count)
        self.read_into([memoryview(data)])
        return bytes(data)

    def read_end(self) -> None:
        self._wait(partial(self._socket.recv, 1))

    def cut(self) -> None:
        self._socket.shutdown(socket.SHUT_RDWR)

    def send_object(self, value: Mapping[str, Any]) -> None:
        data = json.dumps(value).encode()
        self.send([LENGTH.pack(len(data)), data])

    def read_object(self) -> dict[str, Any]:
        """Receive an object of ``send_object``. Raises WireError."""
        (count,) = LENGTH.unpack(self.read(LENGTH.size))
        if count > OBJECT_BYTES:
            raise WireError(f"a header of {count} bytes is too long")
        try:
            value = json.loads(self.read(count))
        except (ValueError, RecursionError) as error:
            raise WireError(f"a header is not JSON: {error}") from None
        if not isinstance(value, dict):
            raise WireError("a header is not an object")
        return value

    def _wait(self, operation: Callable[[], T]) -> T:
        end = min(self._end, time.monotonic() + self._stall_s)
        while True:
            self.check()
            left = end - time.monotonic()
            if left <= 0:
                why = "the deadline is over" if end == self._end else f"nothing moved for {self._stall_s:g} s"
                raise WireError(why)
            self._socket.settimeout(min(left, CHECK_EVERY_S))
            try:
                return operation()
            except TimeoutError:
                continue


def _after(pieces: Sequence[memoryview], count: int) -> list[memoryview]:
    for number, piece in enumerate(pieces):
        if count < len(piece):
            return [piece[count:], *pieces[number + 1 :]]
        count -= len(piece)
    return []


def chunks_of(memory: Iterable[memoryview]) -> Iterator[list[memoryview]]:
    pieces: list[memoryview] = []
    size = 0
    for whole in memory:
        done = 0
        while done < len(whole):
            piece = whole[done : done + CHUNK_BYTES - size]
            pieces.append(piece)
            done += len(piece)
            size += len(piece)
            if size == CHUNK_BYTES or len(pieces) == PIECES:
                yield pieces
                pieces, size = [], 0
    if pieces:
        yield pieces


def digest_of(checksums: Sequence[int], *, generation: int, step: int) -> int:
    return zlib.crc32(struct.pack(f"!QQ{len(checksums)}I", generation, step, *checksums))
