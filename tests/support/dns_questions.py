"""Asking a DNS server, as a resolver does: by UDP, and by TCP when the answer did not fit."""

import socket
import struct
from dataclasses import dataclass

KINDS = {"A": 1, "CNAME": 5, "SOA": 6, "AAAA": 28, "SRV": 33}
NO_SUCH_NAME, NOT_NOW = 3, 2
_TIMEOUT_S = 10.0


@dataclass(frozen=True, kw_only=True)
class Answer:
    code: int
    truncated: bool
    authoritative: bool
    addresses: tuple[str, ...]
    """IPv4 addresses of the answer itself, sorted."""


def ask(server: tuple[str, int], name: str, kind: str = "A", *, tcp: bool = False) -> Answer:
    labels = b"".join(bytes([len(part)]) + part.encode() for part in name.split(".")) + b"\0"
    query = struct.pack(">HHHHHH", 17, 0x100, 1, 0, 0, 0) + labels + struct.pack(">HH", KINDS[kind], 1)
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM if tcp else socket.SOCK_DGRAM) as sock:
        sock.settimeout(_TIMEOUT_S)
        sock.connect(server)
        if tcp:
            sock.sendall(struct.pack(">H", len(query)) + query)
            with sock.makefile("rb") as stream:
                reply = stream.read(*struct.unpack(">H", stream.read(2)))
        else:
            sock.send(query)
            reply = sock.recv(65535)
    return _read(reply, question_bytes=len(labels) + 4)


def _read(reply: bytes, *, question_bytes: int) -> Answer:
    number, flags, _, answers = struct.unpack(">HHHH", reply[:8])
    assert number == 17
    at, found = 12 + question_bytes, []
    for _ in range(answers):
        while reply[at] and reply[at] & 0xC0 != 0xC0:
            at += 1 + reply[at]
        at += 2 if reply[at] else 1
        kind, _, _, length = struct.unpack(">HHIH", reply[at : at + 10])
        if kind == KINDS["A"]:
            found.append(socket.inet_ntoa(reply[at + 10 : at + 14]))
        at += 10 + length
    return Answer(
        code=flags & 15,
        truncated=bool(flags & 0x200),
        authoritative=bool(flags & 0x400),
        addresses=tuple(sorted(found, key=socket.inet_aton)),
    )
