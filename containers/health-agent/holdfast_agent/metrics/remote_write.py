"""
Prometheus's remote write 1.0 (prometheus.io/docs/specs/prw/remote_write_spec): protocol buffers in a snappy block.

Written by hand, because nodes have neither library. The message has one level and four fields, and snappy's block
format allows uncompressed data (google/snappy, format_description.txt): half a minute is a few kilobytes.
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
    """WriteRequest with one sample per number; ``labels`` are added to each that lacks them."""
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
    block = bytearray(_varint(len(data)))
    for start in range(0, len(data), _LONGEST_LITERAL):
        part = data[start : start + _LONGEST_LITERAL]
        block += b"\xf4" + struct.pack("<H", len(part) - 1) + part
    return bytes(block)


def _field(number: int, content: bytes) -> bytes:
    return _varint(number << 3 | 2) + _varint(len(content)) + content


def _varint(value: int) -> bytes:
    found = bytearray()
    while value > 0x7F:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    found.append(value)
    return bytes(found)
