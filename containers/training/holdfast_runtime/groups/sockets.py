"""The sockets of this process, told apart by what their descriptors point to: numbers are used again."""

import contextlib
import os
import socket
from pathlib import Path

DESCRIPTORS = Path("/proc/self/fd")


def descriptors() -> dict[int, str]:
    found = {}
    for path in DESCRIPTORS.iterdir():
        with contextlib.suppress(OSError):
            found[int(path.name)] = str(path.readlink())
    return found


def sockets_of() -> dict[int, str]:
    return {number: target for number, target in descriptors().items() if target.startswith("socket:")}


def newer_than(before: dict[int, str]) -> dict[int, str]:
    return {number: target for number, target in sockets_of().items() if before.get(number) != target}


def shut_down(descriptor: int, target: str) -> None:
    with contextlib.suppress(OSError), socket.socket(fileno=os.dup(descriptor)) as same:
        is_it = str((DESCRIPTORS / str(same.fileno())).readlink()) == target
        is_tcp = same.family in (socket.AF_INET, socket.AF_INET6)
        if is_it and is_tcp and not same.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN):
            same.shutdown(socket.SHUT_RDWR)
