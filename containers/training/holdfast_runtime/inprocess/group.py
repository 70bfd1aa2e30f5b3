"""
The process group of one generation, and how to get out of it at once.

Closing its connections is the only thing that frees a thread that waits in a gloo collective for a peer that is alive
but silent, so the group's sockets are known: those that opening it made. NCCL has an abort of its own.
"""

import contextlib
import os
import socket
import threading
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
import torch.distributed.distributed_c10d as c10d
from torch._C._distributed_c10d import Store

from holdfast_runtime.inprocess.connecting import can_leave

DESCRIPTORS = Path("/proc/self/fd")
END_S = 0.25
"""For the end of a group; it takes a few milliseconds."""


class Group:
    """At most one at a time; it is torch.distributed's default group, so the script's own collectives use it too."""

    def __init__(self, *, backend: str) -> None:
        self.backend = backend
        self._before: dict[int, str] = {}
        self._made: dict[int, str] | None = None
        """The sockets of the group; None while it is being made."""
        self._open = False

    def open(
        self,
        *,
        store: Store,
        rank: int,
        world_size: int,
        deadline_s: float,
        wait_s: float = 0.0,
        leaving: Callable[[], bool] = lambda: False,
    ) -> None:
        """
        Connect all ranks.

        Args:
            deadline_s: For connecting.
            wait_s: Longest wait of a collective for its peers. Default: as for connecting.
            leaving: Whether it is time to leave, while ranks connect. Default: never.

        Raises:
            RuntimeError: one of them is gone.
            ConnectionError: it was time to leave.
        """
        self._before, self._made = sockets_of(), None
        self._open = True
        # Torch numbers the groups of a process, also those that failed, and puts the number into the store's keys: it
        # has to be the same at survivors and newcomers.
        c10d._world.group_count = 0
        with can_leave(leaving):
            dist.init_process_group(
                self.backend, store=store, rank=rank, world_size=world_size, timeout=timedelta(seconds=deadline_s)
            )
        if wait_s > deadline_s:
            c10d._set_pg_timeout(timedelta(seconds=wait_s))
        self._made = self._since()

    def release(self) -> None:
        """
        Break all connections of the group, from any thread: whoever waits in a collective comes out with an error.

        A socket that is only listening is left alone: gloo's own thread does not survive losing that. So is every
        connection that the script has made for itself, to a tracker or to storage. Only where the script has made
        groups of its own it cannot be told which are theirs, and all that are newer than the first group are broken.
        """
        if not self._open:
            return
        if self.backend == "nccl":
            group: Any = dist.group.WORLD
            group._get_backend(torch.device("cuda")).abort()
        own = self._made if self._made is not None and len(c10d._world.pg_map) <= 1 else self._since()
        for descriptor, target in own.items():
            _shut_down(descriptor, target)

    def _since(self) -> dict[int, str]:
        return {number: target for number, target in sockets_of().items() if self._before.get(number) != target}

    def close(self) -> bool:
        """
        Break and forget the group.

        Rarely, a thread of gloo sleeps until the timeout of the group, although all of its connections are broken; and
        the group's end waits for its threads. A survivor must not: nobody else may have the state. So such a group is
        left to a thread of its own.

        Returns:
            False when the group could not be ended: what its collectives work on may still be written to.
        """
        if not self._open:
            return True
        self.release()
        self._open = False
        if not dist.is_initialized():
            return True
        last = [dist.group.WORLD]
        dist.destroy_process_group()
        ending = threading.Thread(target=last.clear, name="holdfast-group-end", daemon=True)
        ending.start()
        ending.join(END_S)
        return not ending.is_alive()


def sockets_of() -> dict[int, str]:
    """Descriptors of sockets, and which socket each is."""
    found = {}
    for path in DESCRIPTORS.iterdir():
        with contextlib.suppress(OSError):
            target = str(path.readlink())
            if target.startswith("socket:"):
                found[int(path.name)] = target
    return found


def _shut_down(descriptor: int, target: str) -> None:
    with contextlib.suppress(OSError), socket.socket(fileno=os.dup(descriptor)) as same:
        # Another thread may have closed it and got its number for something else.
        is_it = str((DESCRIPTORS / str(same.fileno())).readlink()) == target
        is_tcp = same.family in (socket.AF_INET, socket.AF_INET6)
        if is_it and is_tcp and not same.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN):
            same.shutdown(socket.SHUT_RDWR)
