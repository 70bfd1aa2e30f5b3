"""Several ranks on one GPU: NCCL takes them where each says that it is on another host, over sockets of loopback."""

import contextlib
import multiprocessing
import os
import signal
import time
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import timedelta
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from typing import Any

import torch
import torch.distributed as dist
from suite import PATIENCE

from holdfast_runtime.groups import Group, RecordedGroups, nccl

ON_ONE_GPU = {"NCCL_SOCKET_IFNAME": "lo", "NCCL_P2P_DISABLE": "1", "NCCL_SHM_DISABLE": "1"}
START_S = 60.0


class Rank:
    """A process, from outside."""

    def __init__(self, process: BaseProcess, pipe: Connection, *, patience: float) -> None:
        self.process = process
        self._patience = patience
        self._pipe = pipe

    def answer(self, *, within_s: float = START_S) -> Any:
        """Return what it sends next. Raises AssertionError for silence, and for an exception in it."""
        within_s *= self._patience
        assert self._pipe.poll(within_s), f"no answer within {within_s:g} s"
        found = self._pipe.recv()
        assert not isinstance(found, Failure), found.text
        return found

    def send(self, what: Any = None) -> None:
        self._pipe.send(what)

    def signal(self, number: int) -> None:
        assert self.process.pid is not None
        os.kill(self.process.pid, number)

    def ended(self, *, within_s: float) -> int | None:
        """Return its exit code, negative for a signal; None where it lives on."""
        self.process.join(within_s)
        return self.process.exitcode


class Failure:
    def __init__(self, text: str) -> None:
        self.text = text


class Place:
    """A process, from inside."""

    def __init__(self, rank: int, size: int, device: str, port: int, pipe: Connection) -> None:
        self.rank, self.size = rank, size
        self.device = torch.device("cuda", 0) if device == "cuda" else torch.device("cpu")
        self.backend = nccl.MIXED if device == "cuda" else "gloo"
        self._port, self._pipe, self._generation = port, pipe, 0

    def send(self, what: Any = None) -> None:
        self._pipe.send(what)

    def receive(self) -> Any:
        return self._pipe.recv()

    def group(self, *, recorded: RecordedGroups | None = None, **options: Any) -> Group:
        """Open groups over all ranks, the next generation each time."""
        self._generation += 1
        store = dist.TCPStore("127.0.0.1", self._port, is_master=False, timeout=timedelta(seconds=START_S))
        made = Group(backend=self.backend, recorded=recorded)
        made.open(
            store=dist.PrefixStore(str(self._generation), store),
            rank=self.rank,
            world_size=self.size,
            deadline_s=START_S,
            **options,
        )
        return made

    def ones(self, count: int) -> torch.Tensor:
        return torch.ones(count, device=self.device)

    def settle(self) -> None:
        if self.device.type == "cuda":
            torch.cuda.synchronize()


Act = Callable[[Place], None]


@contextmanager
def ranks(act: Act, size: int, device: str, *, environment: Mapping[str, str] | None = None) -> Iterator[list[Rank]]:
    """Start a function of a module in so many processes; they are killed at the end."""
    context = multiprocessing.get_context("spawn")
    store = dist.TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
    found: list[Rank] = []
    try:
        for rank in range(size):
            ours, theirs = context.Pipe()
            own = {**ON_ONE_GPU, "NCCL_HOSTID": f"holdfast-{rank}", **(environment or {})}
            process = context.Process(target=_run, args=(act, rank, size, device, store.port, theirs, own), daemon=True)
            process.start()
            theirs.close()
            found.append(Rank(process, ours, patience=PATIENCE[device]))
        yield found
    finally:
        for each in found:
            with contextlib.suppress(ProcessLookupError):
                each.signal(signal.SIGKILL)
            each.process.join()


def _run(
    act: Act, rank: int, size: int, device: str, port: int, pipe: Connection, environment: Mapping[str, str]
) -> None:
    os.environ.update(environment)
    torch.set_num_threads(1)
    if device == "cuda":
        torch.zeros(1, device="cuda")  # the context; a group makes its communicators at once then
    try:
        act(Place(rank, size, device, port, pipe))
    except BaseException:  # noqa: BLE001 - reported to the check
        pipe.send(Failure(traceback.format_exc()))


def timed(work: Callable[[], object]) -> float:
    """Return its seconds."""
    began = time.perf_counter()
    work()
    return time.perf_counter() - began
