"""
Rest for the thread of gloo that polls a broken connection.

When a connection breaks in the middle of a payload, gloo tells whoever waits on it, but not who waits for that payload:
``Pair::signalException`` goes through the operations that are queued, and this one has left the queue
(pytorch/gloo, gloo/transport/tcp/pair.cc, of 2026-04). So a thread sleeps until the timeout of the group, which cannot
end before. Where the payload's memory has gone by then, ``Pair::read`` returns at once without having read, and the
connection stays ready to be read: the polling thread takes a core until the group ends. What is ready is told to it
once instead.
"""

import contextlib
import ctypes
import platform
import re
import struct
from collections.abc import Iterable, Mapping

from holdfast_runtime.groups.sockets import DESCRIPTORS, descriptors

INFORMATION = DESCRIPTORS.with_name("fdinfo")
POLLING = "anon_inode:[eventpoll]"
POLLED = re.compile(r"^tfd:\s*(\d+) events:\s*[0-9a-f]+ data:\s*([0-9a-f]+) ", re.MULTILINE)
"""Polled descriptor and the data that epoll returns with it: proc_pid_fdinfo(5)."""
EPOLL_CTL_MOD = 3
EPOLLIN = 1
EPOLLET = 1 << 31
EVENT = "=IQ" if platform.machine() == "x86_64" else "@IQ"
"""``struct epoll_event``, which has no gap on x86-64 alone."""


def polling() -> set[int]:
    """Descriptors of epoll in this process."""
    return {number for number, target in descriptors().items() if target == POLLING}


def polled_by(pollers: Iterable[int]) -> dict[int, str]:
    """Descriptors that these poll, with what they point to."""
    found = descriptors()
    return {
        polled: found[polled]
        for number in pollers
        if found.get(number) == POLLING
        for polled, _ in _polled(number)
        if found.get(polled, "").startswith("socket:")
    }


def poll_once(sockets: Mapping[int, str]) -> None:
    found = descriptors()
    for number, target in found.items():
        if target == POLLING:
            for polled, data in _polled(number):
                if polled in sockets and found.get(polled) == sockets[polled]:
                    _change(number, polled, data=data)


def _polled(polling: int) -> list[tuple[int, int]]:
    with contextlib.suppress(OSError):
        found = POLLED.findall((INFORMATION / str(polling)).read_text())
        return [(int(descriptor), int(data, 16)) for descriptor, data in found]
    return []


def _change(polling: int, descriptor: int, *, data: int) -> None:
    event = struct.pack(EVENT, EPOLLIN | EPOLLET, data)
    ctypes.CDLL(None).epoll_ctl(polling, EPOLL_CTL_MOD, descriptor, event)
