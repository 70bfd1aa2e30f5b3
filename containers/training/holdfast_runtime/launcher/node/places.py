"""Fills the places of this node: a process for each rank, and for each spare where spares are of use."""

import asyncio
import socket
import time
from typing import Protocol

from holdfast_runtime.control import FromRank
from holdfast_runtime.launcher.generation import Context, Part
from holdfast_runtime.launcher.links import Warm
from holdfast_runtime.launcher.node.tasks import Tasks
from holdfast_runtime.launcher.ranks import LocalSlot, Process, Processes
from holdfast_runtime.launcher.settings import master_port, variables
from holdfast_runtime.membership import View

REFILL_AFTER_S, REFILL_BY_S, LOOK_S = 0.5, 5.0, 0.1
"""A spare's place is filled again when the ranks here have done a step after the recovery that took it: at the earliest
and the latest, and from one look to the next."""


class Occupants(Protocol):
    """Receives what becomes of the processes."""

    def receive(self, slot: LocalSlot, message: FromRank) -> None: ...
    def exited(self, process: Process, code: int, how: str) -> None: ...


class Places(Part):
    def __init__(self, context: Context, *, processes: Processes, tasks: Tasks) -> None:
        super().__init__(context)
        self._processes = processes
        self._tasks = tasks
        self._prepared = asyncio.Event()
        self._occupants: Occupants
        """Once processes can be started."""
        self._port = 0
        """Where ranks of a script that makes its own groups meet in this generation."""

    def prepared(self, occupants: Occupants) -> None:
        self._occupants = occupants
        self._prepared.set()

    def fill(self, slot: LocalSlot) -> None:
        taken = slot.alive or slot.starting or slot.blocked is not None
        if not (taken or self._ending.begun or slot.finished or self._slots.leaving):
            slot.starting = True
            self._tasks.spawn(self._start(slot))

    def replace(self, slot: LocalSlot) -> None:
        slot.give_way()
        self.fill(slot)

    def fill_later(self, slot: LocalSlot) -> None:
        self._later(REFILL_AFTER_S, self._fill_unless_busy, slot, time.monotonic() + REFILL_BY_S)

    def _fill_unless_busy(self, slot: LocalSlot, until_s: float) -> None:
        resume_step = self._slots.view.resume_step
        steps = [other.progress.step if other.progress is not None else 0 for other in self._slots.in_view]
        if min(steps, default=resume_step + 1) > resume_step or time.monotonic() > until_s:
            self.fill(slot)
        else:
            self._later(LOOK_S, self._fill_unless_busy, slot, until_s)

    def fill_spares(self) -> None:
        for slot in self._slots:
            if slot.rank < 0:
                self.fill(slot)

    def warm(self) -> None:
        """Start spares: processes of this job live through faults. Announced before any message about a view."""
        if self._slots.in_process:
            return
        self._slots.in_process = True
        self._links.broadcast(Warm())
        self.fill_spares()

    def refill(self, view: View) -> None:
        one = self._options.nodes == 1
        self._port = _free_port() if one else master_port(self._options.run_id, view.generation)
        for slot in self._slots:
            slot.finished = False
        for slot in self._slots.in_view:
            self.fill(slot)

    async def _start(self, slot: LocalSlot) -> None:
        await self._prepared.wait()
        view = self._slots.view
        first = view.ranks[0].slot.node if view.ranks else self._slots.node
        environment = variables(
            self._options,
            rank=slot.rank,
            slot=slot.index,
            generation=view.generation,
            restarts=max(0, view.generation - 1),
            master=(self._links.address_of(first), self._port),
            world_size=len(view.ranks),
        )
        try:
            name = f"node{self._options.node_rank}-slot{slot.index}"
            process = await self._processes.start(environment, name=name, on_exit=self._occupants.exited)
        finally:
            slot.starting = False
        slot.process = process
        slot.heard_s = time.monotonic()
        if self._ending.begun:
            process.kill()
        await slot.listen(process, self._occupants.receive)


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as free:
        return int(free.getsockname()[1])
