"""What goes over the connection: a request, a header, then chunks. Each has its length and its checksum before it."""

import json
import socket
import struct
import zlib
from dataclasses import dataclass

CHUNK_BYTES = 4 << 20
CHUNK = struct.Struct("!II")
"""Length and CRC-32 of a chunk."""
LINE_BYTES = 1 << 24


class WireError(ConnectionError):
    """The other side is gone, or says something else than agreed."""


@dataclass(frozen=True, kw_only=True)
class Request:
    """What a receiver wants."""

    epoch: int
    step: int
    name: str
    """Which state: ``replica``, or that of a shard."""


@dataclass(frozen=True, kw_only=True)
class Header:
    """What follows, or why nothing does."""

    refusal: str = ""
    epoch: int = 0
    step: int = 0
    skeleton_bytes: int = 0
    tensors: tuple[tuple[str, tuple[int, ...]], ...] = ()
    """Type and shape of each."""


def send_object(connection: socket.socket, value: Request | Header) -> None:
    """As one line of JSON."""
    connection.sendall(json.dumps(value.__dict__).encode() + b"\n")


def read_line(connection: socket.socket) -> dict[str, object]:
    """One line of JSON, byte by byte no further than its end. Raises WireError."""
    pending = bytearray()
    while not pending.endswith(b"\n"):
        # Peeking first: what follows the line belongs to somebody else.
        seen = connection.recv(65536, socket.MSG_PEEK)
        if not seen or len(pending) > LINE_BYTES:
            raise WireError("the connection ended inside a header")
        end = seen.find(b"\n")
        pending += connection.recv(len(seen) if end < 0 else end + 1)
    try:
        value = json.loads(pending)
    except ValueError as error:
        raise WireError(f"a header is not JSON: {error}") from None
    if not isinstance(value, dict):
        raise WireError("a header is not an object")
    return value


def read_into(connection: socket.socket, view: memoryview) -> None:
    """Fill a buffer. Raises WireError."""
    done = 0
    while done < len(view):
        count = connection.recv_into(view[done:])
        if count == 0:
            raise WireError(f"the connection ended after {done} of {len(view)} bytes of a chunk")
        done += count


def digest_of(checksums: list[int], *, epoch: int, step: int) -> int:
    """One number for all chunks in their order, and for what they are a state of."""
    return zlib.crc32(struct.pack(f"!QQ{len(checksums)}I", epoch, step, *checksums))
