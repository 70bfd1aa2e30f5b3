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
import os
import platform
import re
from collections.abc import Mapping

from holdfast_runtime.groups.sockets import DESCRIPTORS

INFORMATION = DESCRIPTORS.with_name("fdinfo")
POLLING = "anon_inode:[eventpoll]"
POLLED = re.compile(r"^tfd:\s*(\d+) events:\s*[0-9a-f]+ data:\s*([0-9a-f]+) ", re.MULTILINE)
"""One descriptor that is polled, and what whoever polls is told with it: proc_pid_fdinfo(5)."""
EPOLL_CTL_MOD = 3
EPOLLIN = 1
EPOLLET = 1 << 31


class _Event(ctypes.Structure):
    """``struct epoll_event``, which has no gap on x86-64 alone."""

    if platform.machine() == "x86_64":
        _pack_ = 1
    _fields_ = [("events", ctypes.c_uint32), ("data", ctypes.c_uint64)]


def poll_once(sockets: Mapping[int, str]) -> None:
    """
    Have the loops of this process that poll broken connections told once of each, and not again and again.

    Args:
        sockets: Descriptors, and which socket each is.
    """
    for path in DESCRIPTORS.iterdir():
        with contextlib.suppress(OSError):
            if str(path.readlink()) != POLLING:
                continue
            for descriptor, data in POLLED.findall((INFORMATION / path.name).read_text()):
                if _is(int(descriptor), sockets):
                    _change(int(path.name), int(descriptor), data=int(data, 16))


def _is(descriptor: int, sockets: Mapping[int, str]) -> bool:
    return descriptor in sockets and str((DESCRIPTORS / str(descriptor)).readlink()) == sockets[descriptor]


def _change(polling: int, descriptor: int, *, data: int) -> None:
    # Python's own epoll would tell the loop another word than the one that gloo gave.
    event = _Event(events=EPOLLIN | EPOLLET, data=data)
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.epoll_ctl(polling, EPOLL_CTL_MOD, descriptor, ctypes.byref(event)):
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
