"""
Process groups of one generation, and a way out of them at once.

Only closing its connections frees a thread that waits in a gloo collective for a silent peer, so the sockets of the
groups are recorded when they are opened. Communicators of NCCL are aborted.
"""

import sys
import threading
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist
from torch._C._distributed_c10d import Store

from holdfast_runtime.groups import files, nccl, private
from holdfast_runtime.groups.connecting import can_leave
from holdfast_runtime.groups.polling import poll_once, polled_by, polling
from holdfast_runtime.groups.recorded import RecordedGroups
from holdfast_runtime.groups.sockets import newer_than, shut_down, sockets_of

END_S = 0.03
"""For the end of a group of gloo; it takes a few milliseconds."""
NCCL_END_S = 0.1
"""Its threads look up ten times a second."""


@dataclass
class Opening:
    """One making of the groups. Whoever breaks its connections late never reaches those of the next one."""

    before: dict[int, str]
    """Sockets that were there already."""
    made: dict[int, str] | None = None
    """The sockets of the groups; None while they are being made."""
    store: Store | None = None
    """Torch keeps its own part of it only, which works as long as the Python object is there."""
    alone: bool = False
    over: bool = False
    pollers: set[int] = field(default_factory=set)
    """Descriptors of epoll whose connections are the groups' own, also those that come later."""
    aborts: nccl.Aborts = field(default_factory=nccl.Aborts)

    def sockets(self) -> dict[int, str]:
        found = newer_than(self.before) if self.made is None else {**self.made, **polled_by(self.pollers)}
        # What was listed before this looks is of this making: the next one begins after the end.
        return {} if self.over else found


class Group:
    """
    At most one at a time; it is torch.distributed's default group, so the script's own collectives use it too.

    Args:
        recorded: Groups of the script that are made again each time. Default: none, they are the script's own affair.
    """

    def __init__(self, *, backend: str, recorded: RecordedGroups | None = None) -> None:
        self.backend = backend
        self._recorded = recorded
        self._opening: Opening | None = None
        if recorded is not None:
            recorded.made = self._made_by_script

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
        Connect all ranks, and make all recorded groups again under the names that they had.

        Args:
            deadline_s: For connecting.
            wait_s: Longest wait of a collective for its peers. Default: as for connecting.
            leaving: Whether it is time to leave, while ranks connect. Default: never.

        Raises:
            RuntimeError: one of them is gone.
            ConnectionError: it was time to leave.
            UnsupportedError: too few files may be open.
        """
        lazy = files.prepare(self._sizes(world_size))
        opening = self._opening = Opening(before=sockets_of(), store=store)
        pollers = polling() if lazy else set()
        # Torch numbers the groups of a process, also those that failed, and puts the number into the store's keys: it
        # has to be the same at survivors and newcomers.
        private.number_groups_from(0)
        with can_leave(leaving):
            dist.init_process_group(
                self.backend, store=store, rank=rank, world_size=world_size, timeout=timedelta(seconds=deadline_s)
            )
            if self._recorded is not None:
                self._recorded.make_again(timeout_s=deadline_s)
        if self._has_nccl and torch.cuda.is_initialized():  # type: ignore[no-untyped-call]  # before, the script has not chosen its device
            nccl.connect(nccl.backends(private.groups()), leaving=leaving, deadline_s=deadline_s)
        if wait_s > deadline_s:
            private.set_longest_wait(wait_s)
        opening.made = opening.sockets()
        opening.pollers = polling() - pollers if lazy else set()

    @property
    def _has_nccl(self) -> bool:
        return "nccl" in self.backend

    def _sizes(self, world_size: int) -> list[int]:
        """Members of each group, the default one first."""
        return [world_size, *(self._recorded.sizes(world_size) if self._recorded is not None else ())]

    def open_alone(self, *, rank: int, world_size: int) -> None:
        """Open groups of a rank without its peers: collectives end at once and move nothing."""
        from torch.testing._internal.distributed.fake_pg import FakeStore

        self._opening = Opening(before=sockets_of(), made={}, alone=True)
        private.number_groups_from(0)
        dist.init_process_group("fake", store=FakeStore(), rank=rank, world_size=world_size)
        if self._recorded is not None:
            self._recorded.alone = True

    def release(self) -> None:
        """
        Break all connections of the groups, from any thread: whoever waits in a collective comes out with an error.

        A socket that is only listening is left alone: gloo's own thread does not survive losing that. So is every
        connection that the script has made for itself, to a tracker or to storage. Only where the script has made
        groups that are not recorded it cannot be told which are theirs, and all that are newer than the first group
        are broken.
        """
        opening = self._opening
        if opening is None or opening.over or opening.alone:
            return
        if self._recorded is None and len(private.groups()) > 1:
            opening.made = None
        for descriptor, target in opening.sockets().items():
            shut_down(descriptor, target)
        if self._has_nccl:  # last: an abort ends waits without an error, and no vote may follow it
            opening.aborts.begin(nccl.backends(private.groups()))

    def close(self, *, look: Callable[[list[Any]], None] = lambda _groups: None) -> bool:
        """
        Break and forget the groups.

        A thread of gloo that was in the middle of a payload sleeps until the timeout of the group, although all of its
        connections are broken; and the group's end waits for its threads. A survivor must not: nobody else may have the
        state. So such a group is left to a thread of its own.

        Args:
            look: Called with the groups that have just ended. Default: nothing.

        Returns:
            False when a group could not be ended: what its collectives work on may still be written to.
        """
        opening, self._opening = self._opening, None
        if opening is None:
            return True
        broken = self._release_and_end(opening)
        if self._recorded is not None:
            self._recorded.alone = False
        if not dist.is_initialized():
            return True
        last = private.groups()
        private.forget_meshes()
        if self._has_nccl:
            opening.aborts.join()
            private.forget_groups()
        else:
            dist.destroy_process_group()
        _forget_calls(sys.exc_info()[1])
        look(last)
        ending = threading.Thread(target=last.clear, name="holdfast-group-end", daemon=True)
        ending.start()
        ending.join(NCCL_END_S if self._has_nccl else END_S)
        if not ending.is_alive():
            return True
        poll_once(broken)
        return False

    def _release_and_end(self, opening: Opening) -> dict[int, str]:
        self._opening = opening
        self.release()
        self._opening = None
        broken = opening.sockets()
        opening.over = True
        return broken

    def _made_by_script(self, sockets: dict[int, str]) -> None:
        opening = self._opening
        if opening is not None and opening.made is not None:
            opening.made = opening.made | sockets


def _forget_calls(error: BaseException | None) -> None:
    known: set[int] = set()
    errors = [error]
    while errors:
        each = errors.pop()
        if each is not None and id(each) not in known:
            known.add(id(each))
            traceback.clear_frames(each.__traceback__)
            errors += [each.__cause__, each.__context__]
