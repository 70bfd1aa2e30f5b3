"""Thread that polls Slurm's queue and ends tasks of elastic jobs."""

import sys
import threading
import time
from collections.abc import Callable

from holdfast_agent.lending.queue import SINFO, SQUEUE, parse_free, parse_queue
from holdfast_agent.lending.selection import tasks_to_end
from holdfast_agent.slurm import Program, SlurmError

EVERY_S = 3.0
SERVED_S = 300.0
"""Nodes are not taken for the same job again within this time."""


class Lender:
    """
    Takes nodes of elastic jobs back for jobs of higher priority.

    A task gets SIGTERM through its batch script, which passes it to the launcher. If it is still there after it,
    Slurm requeues it, and its job loses a node.

    Args:
        notice_s: Between the two.
        every_s: Interval of polls.
        say: Log function. Default: standard error
    """

    name = "lending of nodes"

    def __init__(
        self,
        *,
        program: Program,
        notice_s: float,
        every_s: float = EVERY_S,
        say: "Callable[[str], object]" = lambda text: print(text, file=sys.stderr, flush=True),
        monotonic: "Callable[[], float]" = time.monotonic,
    ) -> None:
        self._program, self._notice_s, self._every_s = program, notice_s, every_s
        self._say, self._monotonic = say, monotonic
        self._notified: dict[str, float] = {}
        self._forced: set[str] = set()
        self._served: dict[str, float] = {}
        self._taken = 0
        self.problem = ""
        """Slurm's last error; empty where it responds."""
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._run, name="lending", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._ending.set()

    def numbers(self) -> "dict[str, float]":
        return {"nodes_taken_back_total": float(self._taken)}

    def look(self) -> None:
        now_s = self._monotonic()
        queue = parse_queue(self._program.run(SQUEUE))
        free = parse_free(self._program.run(SINFO))
        running = {one.name for one in queue if one.state == "RUNNING"}
        self._notified = {name: since_s for name, since_s in self._notified.items() if name in running}
        self._forced &= running
        self._served = {name: since_s for name, since_s in self._served.items() if now_s - since_s < SERVED_S}
        tasks, takers = tasks_to_end(queue, free=free, notified=self._notified, served=self._served)
        for name in tasks:
            self._notified[name] = now_s
            self._program.run(["scancel", "--batch", "--signal=TERM", name])
            self._taken += 1
            self._say(f"task {name} gets SIGTERM, notice {self._notice_s:g} s: {', '.join(takers)} waits for nodes")
        self._served.update(dict.fromkeys(takers, now_s))
        for name, since_s in self._notified.items():
            if now_s - since_s >= self._notice_s and name not in self._forced:
                self._forced.add(name)
                self._program.run(["scontrol", "requeue", name])
                self._say(f"task {name} did not leave in time: requeued")

    def _run(self) -> None:
        while not self._ending.wait(self._every_s):
            try:
                self.look()
                problem = ""
            except SlurmError as error:
                problem = str(error)
            if problem and problem != self.problem:
                self._say(f"lending stopped: {problem}")
            self.problem = problem
