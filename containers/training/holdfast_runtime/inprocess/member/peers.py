"""The other ranks of a generation: connected, waited for with a way out, and left at once."""

import contextlib
import logging
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
import torch.distributed as dist
from torch._C._distributed_c10d import Store

from holdfast_runtime.control import Deadlines, Leave
from holdfast_runtime.groups import Group, RecordedGroups, Waits, has_ended
from holdfast_runtime.inprocess.errors import BrokenError
from holdfast_runtime.inprocess.member.standing import Standing
from holdfast_runtime.transfer import TransferError

_LOG = logging.getLogger(__name__)
RELEASE_EVERY_S = 0.02
NOTICE_S = 0.1
"""Longest time from an error of a collective to the launcher's report of a lost peer."""
PEERS = (RuntimeError, OSError, TransferError)
"""What a collective or a copy raises when a peer dies in it."""


class Peers:
    """
    The groups of this process, and the ways out of them.

    Args:
        recorded: Groups of the script, which are made again. Default: they are its own affair.
    """

    def __init__(self, own: Standing, *, backend: str, recorded: RecordedGroups | None, deadlines: Deadlines) -> None:
        self.left_cleanly = True
        """Whether nothing of an earlier group is at work any more."""
        self.all_on_host = False
        """Whether what ranks tell each other is in host memory, whatever the model's device is."""
        self.reason = ""
        """Reason of the newest leave, from the launcher."""
        self._own = own
        self._deadlines = deadlines
        self._group = Group(backend=backend, recorded=recorded)
        self._leave_generation = 0
        self._left = threading.Event()
        self._left.set()
        if recorded is not None and "nccl" not in backend:
            Waits(lambda: self.must_leave).watch()

    @property
    def backend(self) -> str:
        return self._group.backend

    @property
    def device(self) -> torch.device:
        return torch.device("cuda") if self._group.backend == "nccl" and not self.all_on_host else torch.device("cpu")

    @property
    def must_leave(self) -> bool:
        return self._leave_generation > self._own.generation

    def wait_for_leave(self, *, within_s: float = NOTICE_S) -> bool:
        """Return True if a peer is lost: the launcher reports it a few milliseconds after a collective has failed."""
        end = time.monotonic() + within_s
        while not self.must_leave and time.monotonic() < end:
            time.sleep(0.002)
        return self.must_leave

    def check(self) -> None:
        if self.must_leave:
            raise BrokenError(f"generation {self._own.generation} is over")

    def wait(self, work: Any, *, device: torch.device | None = None) -> None:
        """
        Until a collective is done, or enqueued on the GPU.

        Rarely a thread of gloo sleeps on although all of its connections are broken. So this looks up now and then.
        NCCL would abort the communicator at the end of such a look.

        Args:
            device: Of its tensors. Default: as ``device``

        Raises:
            BrokenError: it failed, or the generation is over.
        """
        of_nccl = "nccl" in self._group.backend and (device or self.device).type == "cuda"
        with with_peers("a collective failed"):
            if of_nccl:
                work.wait()
                return
            while not has_ended(work):
                self.check()

    def all_here(self) -> None:
        """Until all ranks have come to this place. Raises BrokenError."""
        self.wait(dist.all_reduce(torch.ones(1, dtype=torch.float32, device=self.device), async_op=True))

    def smallest(self, numbers: Sequence[int]) -> Sequence[int]:
        """The smallest of each number over all ranks. Raises BrokenError."""
        tensor = torch.tensor(numbers, dtype=torch.int64, device=self.device)
        if self._own.world_size > 1:
            self.wait(dist.all_reduce(tensor, op=dist.ReduceOp.MIN, async_op=True))
        return [int(number) for number in tensor]

    def open(self, store: Store) -> None:
        """Connect all ranks. Raises BrokenError."""
        with with_peers("the ranks did not connect"):
            self._group.open(
                store=store,
                rank=self._own.rank,
                world_size=self._own.world_size,
                deadline_s=self._deadlines.connect,
                wait_s=self._deadlines.progress + self._deadlines.ready,
                leaving=lambda: self.must_leave,
            )
        self.check()

    def open_alone(self) -> None:
        self._group.open_alone(rank=self._own.rank, world_size=self._own.world_size)

    def close(self, *, look: Callable[[list[Any]], None] | None = None) -> None:
        """
        End the groups.

        Args:
            look: Called with the groups that have just ended. Default: nothing.
        """
        cleanly = self._group.close() if look is None else self._group.close(look=look)
        self.left_cleanly = cleanly and self.left_cleanly

    def entered(self) -> None:
        """From now on the thread of the control socket may break the groups."""
        self._left.clear()

    def left(self) -> None:
        self._left.set()

    def leave(self, leave: Leave) -> None:
        """In the thread of the control socket: free the main thread from wherever it waits for a peer."""
        self._leave_generation, self.reason = max(self._leave_generation, leave.generation), leave.reason
        if not self._left.is_set():
            self._release()
            threading.Thread(target=self._release_until_left, name="holdfast-release", daemon=True).start()

    def _release_until_left(self) -> None:
        end = time.monotonic() + self._deadlines.leave
        while not self._left.wait(RELEASE_EVERY_S) and time.monotonic() < end and self.must_leave:
            self._release()

    def _release(self) -> None:
        try:
            self._group.release()
        except Exception:  # noqa: BLE001 - the thread of the control socket has to go on, and it is tried again
            _LOG.exception("groups could not be released")


@contextlib.contextmanager
def with_peers(what: str) -> Iterator[None]:
    try:
        yield
    except BrokenError:
        raise
    except PEERS as error:
        raise BrokenError(f"{what}: {error}") from error
