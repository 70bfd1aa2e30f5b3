"""
A lossy link: an nftables rule that drops incoming packets at random, silently.

Written over netlink, because netem and ``nft`` are often missing. The table has an owner, so the kernel removes it with
its socket.
"""

import contextlib
import os
import socket
import struct
from collections.abc import Iterator

from holdfast.localcloud.nodes import Node
from holdfast.localcloud.planting.effects.inside import in_network_of

ONE_IN = 5
_NETLINK_NETFILTER, _NETDEV, _NFTABLES = 12, 5, 10
_BEGIN, _END = 0x10, 0x11
_NEW_TABLE, _NEW_CHAIN, _NEW_RULE = (_NFTABLES << 8 | kind for kind in (0, 3, 6))
_REQUEST, _ACK, _CREATE, _APPEND = 0x1, 0x4, 0x400, 0x800
_NESTED, _ERROR = 0x8000, 0x2
_OWNED = 0x2
_TABLE, _CHAIN = b"holdfast\0", b"lossy\0"
_TIMEOUT_S = 5.0
_LINK = "eth0"


@contextlib.contextmanager
def lossy_link(node: Node) -> Iterator[str]:
    """Drop one in ``ONE_IN`` of the packets to the node; yield the description."""
    connection = in_network_of(node, lambda: socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, _NETLINK_NETFILTER))
    try:
        connection.settimeout(_TIMEOUT_S)
        connection.send(batch(_LINK))
        for _ in range(3):
            _acknowledged(connection.recv(1 << 13))
        yield f"one in {ONE_IN} at random, on {_LINK}"
    finally:
        connection.close()


def batch(link: str) -> bytes:
    """Return the batch for a table, a chain at the device's ingress and the rule; atomic in the kernel."""
    hook = _u32(1, 0) + _u32(2, 0) + _attribute(3, link.encode() + b"\0")
    chain = _attribute(1, _TABLE) + _attribute(3, _CHAIN) + _attribute(4 | _NESTED, hook)
    chain += _u32(5, 1) + _attribute(7, b"filter\0")
    verdict = _attribute(2 | _NESTED, _attribute(2 | _NESTED, _u32(1, 0)))
    expressions = (
        _expression(b"numgen", _u32(1, 1) + _u32(2, ONE_IN) + _u32(3, 1)),
        # Equal to 0, which is the same in both orders of bytes.
        _expression(b"cmp", _u32(1, 1) + _u32(2, 0) + _attribute(3 | _NESTED, _attribute(1, bytes(4)))),
        _expression(b"counter", b""),
        _expression(b"immediate", _u32(1, 0) + verdict),
    )
    rule = _attribute(1, _TABLE) + _attribute(2, _CHAIN) + _attribute(4 | _NESTED, b"".join(expressions))
    return b"".join(
        [
            _message(_BEGIN, 0, b"", family=0, resource=_NFTABLES),
            _message(_NEW_TABLE, _ACK | _CREATE, _attribute(1, _TABLE) + _u32(2, _OWNED)),
            _message(_NEW_CHAIN, _ACK | _CREATE, chain),
            _message(_NEW_RULE, _ACK | _CREATE | _APPEND, rule),
            _message(_END, 0, b"", family=0, resource=_NFTABLES),
        ]
    )


def _message(kind: int, flags: int, attributes: bytes, *, family: int = _NETDEV, resource: int = 0) -> bytes:
    body = struct.pack(">BBH", family, 0, resource) + attributes
    return struct.pack("=IHHII", 16 + len(body), kind, _REQUEST | flags, 0, 0) + body


def _attribute(kind: int, data: bytes) -> bytes:
    return struct.pack("=HH", 4 + len(data), kind) + data + bytes(-len(data) % 4)


def _u32(kind: int, value: int) -> bytes:
    return _attribute(kind, struct.pack(">I", value))


def _expression(name: bytes, data: bytes) -> bytes:
    return _attribute(1 | _NESTED, _attribute(1, name + b"\0") + _attribute(2 | _NESTED, data))


def _acknowledged(answer: bytes) -> None:
    (kind,) = struct.unpack_from("=H", answer, 4)
    (error,) = struct.unpack_from("=i", answer, 16)
    if kind == _ERROR and error:
        raise OSError(-error, f"the kernel's nftables refused a rule: {os.strerror(-error)}")
