"""The kernel's FUSE protocol for one file mounted on a file (include/uapi/linux/fuse.h, protocol 7.31)."""

from __future__ import annotations

import struct

FORGET, GETATTR, SETATTR, OPEN, READ, WRITE, STATFS, RELEASE = 2, 3, 4, 14, 15, 16, 17, 18
FLUSH, INIT, INTERRUPT, DESTROY, POLL, BATCH_FORGET, LSEEK = 25, 26, 36, 38, 40, 42, 46
GETATTR_FH = 1
"""In the flags of GETATTR: the request is about an open file."""
FOPEN_DIRECT_IO = 1
POLL_SCHEDULE_NOTIFY = 1
_NOTIFY_POLL = 1
_MAX_WRITE = 4096
_REGULAR = 0o100000

IN = struct.Struct("<IIQQIIII")
"""Length, opcode, unique, node, user, group, process, and unused fields."""
OUT = struct.Struct("<IiQ")
U32, U64 = struct.Struct("<I"), struct.Struct("<Q")
GETATTR_IN, POLL_IN, WRITE_IN = struct.Struct("<IIQ"), struct.Struct("<QQII"), struct.Struct("<QQIIQII")
READ_IN, LSEEK_IN = struct.Struct("<QQIIQII"), struct.Struct("<QQII")
PAIR, OPENED = struct.Struct("<II"), struct.Struct("<QII")
_ATTRIBUTES = struct.Struct("<QIIQQQQQQIIIIIIIIII")
READ_BUFFER = 1 << 13
"""The least that the kernel asks a server to offer, which holds any request with ``_MAX_WRITE``."""


def reply(unique: int, payload: bytes = b"", *, error: int = 0) -> bytes:
    return OUT.pack(OUT.size + len(payload), -error, unique) + payload


def notify_poll(handle: int) -> bytes:
    """Wake pollers of the file ``handle``."""
    return OUT.pack(OUT.size + U64.size, _NOTIFY_POLL, 0) + U64.pack(handle)


def init_reply(unique: int, body: bytes) -> bytes:
    _, minor, ahead, _ = struct.unpack_from("<IIII", body)
    settings = struct.pack("<IIIIHHIIHH", 7, min(minor, 31), ahead, 0, 16, 12, _MAX_WRITE, 1, 0, 0)
    return reply(unique, settings + bytes(32))


def attributes(unique: int, *, size: int, seconds: int) -> bytes:
    """Return root's file 0644; valid for no time, so that the kernel asks for the size."""
    times = (seconds, seconds, seconds, 0, 0, 0)
    return reply(unique, _ATTRIBUTES.pack(0, 0, 0, 1, size, 0, *times, _REGULAR | 0o644, 1, 0, 0, 0, 4096, 0))


def statistics(unique: int) -> bytes:
    return reply(unique, struct.pack("<QQQQQIIII24x", 0, 0, 0, 0, 0, 4096, 255, 4096, 0))
