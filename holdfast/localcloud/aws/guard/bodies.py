"""Bounded bodies of requests, with Content-Length or chunked. One read never allocates more than was received."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from holdfast.localcloud.aws.common import ServiceError

STEP = 1 << 18
LARGEST = 80 << 20
LARGEST_OF_S3 = 1 << 30
ALL_TOGETHER = 2 << 30
CHUNK_LINE = 256
TRAILER_LINES = 64


def ceiling_of(service: str) -> int:
    """Return the largest body for a service: S3 objects are large, a function's code is the largest of the others."""
    return LARGEST_OF_S3 if service == "s3" else LARGEST


class Budget:
    def __init__(self, limit: int = ALL_TOGETHER) -> None:
        self._left = limit
        self._lock = threading.Lock()

    @contextmanager
    def part(self) -> Iterator["Part"]:
        part = Part(self)
        try:
            yield part
        finally:
            self.take(-part.taken)

    def take(self, count: int) -> None:
        with self._lock:
            if count > self._left:
                raise ServiceError("SlowDown", "Please reduce your request rate.", 503)
            self._left -= count


class Part:
    def __init__(self, budget: Budget) -> None:
        self._budget = budget
        self.taken = 0

    def take(self, count: int) -> None:
        self._budget.take(count)
        self.taken += count


def read_body(environ: dict[str, Any], *, ceiling: int, part: Part) -> bytes:
    """Return the whole body, decoded from chunks. Raise ServiceError for one that is too large or of another length."""
    source, declared = environ["wsgi.input"], environ.get("CONTENT_LENGTH")
    coding = str(environ.get("HTTP_TRANSFER_ENCODING", "")).strip().lower()
    if coding:
        if coding != "chunked":
            raise ServiceError(
                "NotImplemented", f"transfer coding {coding[:40]!r} is not implemented; use chunked", 501
            )
        if declared:
            raise _bad("a request has either Content-Length or Transfer-Encoding, not both")
        body = b"".join(_chunks(source, ceiling=ceiling, part=part))
    else:
        length = str(declared or "0").strip()
        if not (length.isascii() and length.isdigit() and len(length) <= 20):
            raise _bad(f"Content-Length is {length[:40]!r}; allowed: a number of bytes")
        body = b"".join(_exactly(source, _within(int(length), ceiling), part))
    return body


def _chunks(source: Any, *, ceiling: int, part: Part) -> Iterator[bytes]:
    total = 0
    while True:
        line = source.readline(CHUNK_LINE)
        digits = line.split(b";")[0].strip()
        if not line.endswith(b"\n") or not digits or len(digits) > 16 or digits.strip(b"0123456789abcdefABCDEF"):
            raise _bad(f"a chunk begins with {line[:20]!r}; allowed: its length in hexadecimal digits and a line's end")
        length = int(digits, 16)
        total = _within(total + length, ceiling)
        if length == 0:
            break
        yield from _exactly(source, length, part)
        if source.readline(2) not in (b"\r\n", b"\n"):
            raise _bad("a chunk is longer than its declared length")
    for _ in range(TRAILER_LINES):
        if source.readline(CHUNK_LINE) in (b"\r\n", b"\n", b""):
            return
    raise _bad("too many trailers")


def _exactly(source: Any, length: int, part: Part) -> Iterator[bytes]:
    while length:
        part.take(min(length, STEP))
        data = source.read(min(length, STEP))
        if not data:
            raise ServiceError(
                "IncompleteBody", "You did not provide the number of bytes specified by the Content-Length HTTP header"
            )
        length -= len(data)
        yield data


def _within(length: int, ceiling: int) -> int:
    if length > ceiling:
        raise ServiceError(
            "EntityTooLarge",
            f"Your proposed upload exceeds the maximum allowed size: {length} bytes, allowed: {ceiling}; "
            "upload an object in parts",
            413,
        )
    return length


def _bad(message: str) -> ServiceError:
    return ServiceError("InvalidRequest", message)
