"""The thread that looks at Slurm's queue, and tells tasks of elastic jobs to leave."""

import sys
import threading
import time
from collections.abc import Callable, Sequence
from typing import Protocol

from holdfast_agent.lending.queue import SINFO, SQUEUE, parse_free, parse_queue
from holdfast_agent.lending.taking import to_tell
from holdfast_agent.slurm import SlurmError

EVERY_S = 3.0
SERVED_S = 300.0
"""Nodes are not taken for the same job again within this time."""


class Runs(Protocol):
    """What is needed of ``holdfast_agent.slurm.Program``."""

    def run(self, argv: "Sequence[str]") -> str: ...


class Lender:
    """
    Takes nodes of elastic jobs back for jobs of a higher priority; ``start`` it.

    A task is told by SIGTERM to its batch script, which hands it on to the launcher. One that is still there when its
    notice is over is put back into the queue by Slurm, and its job loses a node.

    Args:
        program: Runs Slurm's commands.
        notice_s: Between the two.
        every_s: Between two looks. Default: 3 s
        say: Hears what is done. Default: standard error
        monotonic: Seconds. Default: the machine's
    """

    name = "lending of nodes"

    def __init__(
        self,
        *,
        program: Runs,
        notice_s: float,
        every_s: float = EVERY_S,
        say: "Callable[[str], object]" = lambda text: print(text, file=sys.stderr, flush=True),
        monotonic: "Callable[[], float]" = time.monotonic,
    ) -> None:
        self._program, self._notice_s, self._every_s = program, notice_s, every_s
        self._say, self._monotonic = say, monotonic
        self._told: dict[str, float] = {}
        self._forced: set[str] = set()
        self._served: dict[str, float] = {}
        self._taken = 0
        self.problem = ""
        """What Slurm did not answer; empty where it does."""
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._run, name="lending", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def stop(self) -> None:
        """End soon."""
        self._ending.set()

    def numbers(self) -> "dict[str, float]":
        """For metrics."""
        return {"nodes_taken_back_total": float(self._taken)}

    def look(self) -> None:
        """Once; raises SlurmError."""
        now_s = self._monotonic()
        queue = parse_queue(self._program.run(SQUEUE))
        free = parse_free(self._program.run(SINFO))
        running = {one.name for one in queue if one.state == "RUNNING"}
        self._told = {name: since_s for name, since_s in self._told.items() if name in running}
        self._forced &= running
        self._served = {name: since_s for name, since_s in self._served.items() if now_s - since_s < SERVED_S}
        tasks, takers = to_tell(queue, free=free, told=self._told, served=self._served)
        for name in tasks:
            self._told[name] = now_s
            self._program.run(["scancel", "--batch", "--signal=TERM", name])
            self._taken += 1
            self._say(f"task {name} is told to leave within {self._notice_s:g} s: {', '.join(takers)} waits for nodes")
        self._served.update(dict.fromkeys(takers, now_s))
        for name, since_s in self._told.items():
            if now_s - since_s >= self._notice_s and name not in self._forced:
                self._forced.add(name)
                self._program.run(["scontrol", "requeue", name])
                self._say(f"task {name} did not leave, and is put back into the queue")

    def _run(self) -> None:
        while not self._ending.wait(self._every_s):
            try:
                self.look()
                problem = ""
            except SlurmError as error:
                problem = str(error)
            if problem and problem != self.problem:
                self._say(f"nodes are not lent: {problem}")
            self.problem = problem
