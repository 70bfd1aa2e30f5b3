"""
Prometheus's remote write 1.0 (prometheus.io/docs/specs/prw/remote_write_spec): protocol buffers in a snappy block.

Pure, and written out by hand, because a node has neither library. A message of one level and four fields needs none,
and snappy's block format allows data that is not compressed (google/snappy, format_description.txt): what is sent in
half a minute are a few kilobytes.
"""

import struct
from collections.abc import Sequence

from holdfast_agent.signals import Numbers

HEADERS = {
    "Content-Encoding": "snappy",
    "Content-Type": "application/x-protobuf",
    "X-Prometheus-Remote-Write-Version": "0.1.0",
}
_LONGEST_LITERAL = 1 << 16


def write_request(numbers: Numbers, *, time_ms: int, labels: "Sequence[tuple[str, str]]" = ()) -> bytes:
    """
    A WriteRequest with one sample for each number.

    Args:
        labels: Given to each, unless it has one of that name, such as ``instance``.
    """
    message = bytearray()
    for (name, own), value in sorted(numbers.items()):
        named = {**dict(labels), **dict(own), "__name__": name}
        series = b"".join(
            _field(1, _field(1, key.encode()) + _field(2, text.encode())) for key, text in sorted(named.items()) if text
        )
        sample = b"\x09" + struct.pack("<d", value) + b"\x10" + _varint(time_ms)
        message += _field(1, series + _field(2, sample))
    return bytes(message)


def compressed(data: bytes) -> bytes:
    """A snappy block of literals."""
    block = bytearray(_varint(len(data)))
    for start in range(0, len(data), _LONGEST_LITERAL):
        part = data[start : start + _LONGEST_LITERAL]
        block += b"\xf4" + struct.pack("<H", len(part) - 1) + part
    return bytes(block)


def _field(number: int, content: bytes) -> bytes:
    """One of length-delimited content."""
    return _varint(number << 3 | 2) + _varint(len(content)) + content


def _varint(value: int) -> bytes:
    found = bytearray()
    while value > 0x7F:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    found.append(value)
    return bytes(found)
