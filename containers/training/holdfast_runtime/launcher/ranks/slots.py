"""The processes of this node: what each last said, and what the next view may count on. No decision is made here."""

import asyncio
import contextlib
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from holdfast_runtime import control
from holdfast_runtime.control import (
    FROM_RANK,
    TO_RANK,
    Finished,
    FromRank,
    Hello,
    MessageError,
    Progress,
    Ready,
    Survives,
    ToRank,
)
from holdfast_runtime.launcher.ranks.processes import Process
from holdfast_runtime.membership import Asked, RankStatus, Slot, Status, View

LINE_BYTES = 1 << 26
LAST_ONES = 3
"""How often ``leave`` passes until processes are killed that alone have the state."""
LIVES = 1 << 20
"""More processes than one place will see under one launcher."""


@dataclass
class LocalSlot:
    """A place for a process, and the process that is in it now."""

    index: int
    incarnation: int = 0
    process: Process | None = None
    writer: asyncio.StreamWriter | None = None
    starting: bool = False
    speaks: bool = False
    """The process has sent its first message: it stays alive through faults of others."""
    ready: Ready | None = None
    """Its report when it left its collectives; None while it trains."""
    rank: int = -1
    """In the committed view."""
    generation: int = 0
    """Of the last view that it was given; 0 for a process that has never been in one."""
    progress: Progress | None = None
    heard_s: float = field(default_factory=time.monotonic)
    finished: bool = False
    silent: asyncio.Event = field(default_factory=asyncio.Event)
    """All messages of the process are read."""
    deaths: int = 0
    """Deaths in this place before any view was reached, one after the other."""
    given: int = -1
    """The rank that it had, and whose state it gives to the process that has it now; -1 for any other process."""
    held: bool = False
    """Whether it is still to be decided if the process stays: no view counts on it."""
    built: int = -1
    """Rank for whose model the process was prepared before it has one; -1 for none."""
    last_wait: bool = False
    """Whether the process waits for the others after its last step: it votes, and has begun no step since the last."""
    awaited: control.View | None = None
    """The place that the next process here takes, which begins for one that was built for another rank."""
    killed_for: str = ""
    """Why the launcher killed the process; empty where it did not."""
    blocked: Process | None = None
    """A process that does not end after SIGKILL and still holds the device of this place: no other starts here."""
    late: list[bytes] = field(default_factory=list)
    """What others of the view had to say to it before it was there."""

    @property
    def alive(self) -> bool:
        return self.process is not None

    def send(self, message: ToRank) -> None:
        if self.writer is not None:
            self.writer.write(TO_RANK.encode(message) + b"\n")

    def kill(self, why: str) -> None:
        if self.process is not None:
            self.killed_for = why
            self.process.kill()

    def vacate(self) -> None:
        self.deaths = self.deaths + (self.built < 0) if self.generation == 0 else 0
        self.give_way()
        self.incarnation += 1

    def give_way(self) -> None:
        if self.writer is not None:
            self.writer.close()
        if self.process is not None:
            self.process.kill()
        self.process, self.writer, self.ready, self.progress = None, None, None, None
        self.speaks, self.generation, self.held, self.given, self.built = False, 0, False, -1, -1
        self.last_wait, self.killed_for = False, ""

    def take(self, view: control.View) -> None:
        making = self.built >= 0 and (self.ready is None or self.ready.built < 0)
        self.progress = Progress(step=view.resume_step, phase="recover") if making else None
        self.ready, self.generation, self.heard_s = None, view.generation, time.monotonic()
        self.built, self.last_wait = -1, False
        self.send(view)
        late = [*self.late]
        self.expect(None)
        for line in late:
            self.post(line)

    def expect(self, view: control.View | None) -> None:
        """The next process here takes this place of a view; None for no place of any."""
        self.awaited = view
        self.late.clear()

    def post(self, line: bytes) -> None:
        if self.awaited is not None:
            self.late.append(line)
        elif self.writer is not None:
            self.writer.write(line)

    @property
    def moves(self) -> bool:
        return self.built >= 0 and self.ready is not None and self.ready.built >= 0 and self.ready.moves

    @property
    def copies(self) -> bool:
        return self.progress is not None and self.progress.phase == "copy"

    @property
    def done(self) -> bool:
        planned = self.ready is not None and self.ready.planned
        return self.finished or (self.last_wait and not planned)

    @property
    def spare(self) -> bool:
        return self.alive and self.ready is not None and self.rank < 0 and self.generation == 0

    async def listen(self, process: Process, on_message: Callable[["LocalSlot", FromRank], None]) -> None:
        self.silent = silent = asyncio.Event()
        reader, self.writer = await asyncio.open_unix_connection(sock=process.control, limit=LINE_BYTES)
        with contextlib.suppress(OSError, MessageError, ValueError):
            while line := await reader.readline():
                if self.process is not process:
                    return
                message = FROM_RANK.decode(line)
                if not self._is_late(message):
                    self._note(message)
                    on_message(self, message)
        silent.set()

    def _is_late(self, message: FromRank) -> bool:
        return isinstance(message, Ready) and message.built >= 0 and self.generation > 0

    def _note(self, message: FromRank) -> None:
        self.heard_s = time.monotonic()
        if isinstance(message, Hello):
            self.speaks = True
        elif isinstance(message, Ready):
            self.ready, self.finished = message, False
        elif isinstance(message, Progress):
            self.finished = self.finished and message.phase != "forward"  # the loop of the next epoch has begun
            before, self.progress = self.progress, message
            begun = before is None or before.step != message.step or before.phase not in ("other", "between")
            self.last_wait = message.phase == "vote" and not begun
        elif isinstance(message, Finished):
            self.finished = True


class LocalSlots:
    """
    The job on this node: its view, what has become of it, and its places, those for ranks first, then those for spares.
    """

    def __init__(self, *, node: int, ranks: int, spares: int, world_size: int = 0, nodes: int = 1) -> None:
        self.node = node
        self.ranks = ranks
        self.world_size = world_size or ranks
        """Of the job, as it is now."""
        self.view = View(generation=0, nodes=(0,) * nodes)
        """The committed one."""
        self.requested = ""
        """Reason for the next view; empty for none."""
        self.asked = Asked()
        """The size that was asked for last."""
        self._slots = [LocalSlot(index) for index in range(ranks + spares)]
        self.known_step = 0
        self.checkpoint_step = -1
        """Newest that a local process has reported."""
        self.leaving = False
        """Whether this node gives its ranks away."""
        self.quarantined = False
        """Whether no process of this node gets a rank any more that has none."""
        self.survives: Survives | None = None
        """Tolerated losses of a sharded job's state; None without a report."""
        self.in_process = False
        """Whether processes of this job stay alive through faults of others."""

    def __iter__(self) -> Iterator[LocalSlot]:
        return iter(self._slots)

    def __getitem__(self, index: int) -> LocalSlot:
        return self._slots[index]

    def of(self, process: Process) -> LocalSlot | None:
        """The place of a process; None when another is there already."""
        return next((slot for slot in self._slots if slot.process is process), None)

    @property
    def in_view(self) -> list[LocalSlot]:
        return [slot for slot in self._slots if slot.rank >= 0]

    @property
    def some_finished(self) -> bool:
        return any(slot.finished for slot in self._slots)

    @property
    def begun_again(self) -> bool:
        """True if a rank is in the loop of the next epoch, which others may not have reached."""
        return self.some_finished and any(
            slot.alive and not slot.finished and not slot.last_wait for slot in self.in_view
        )

    def learn(self, step: int) -> None:
        self.known_step = max(self.known_step, step)

    def go_on(self, view: View) -> None:
        if view.lost_steps:
            self.known_step = view.resume_step

    def all_left(self, *, first: bool) -> bool:
        """
        Return True if the next view need not wait for a process here.

        Args:
            first: No view of live processes was committed yet: those that are starting are waited for.
        """
        if not self.in_process:
            return not any(slot.alive or slot.starting for slot in self._slots)
        return all(
            (slot.ready is not None and not slot.held) or slot.finished or not (slot.alive or (first and slot.starting))
            for slot in self.in_view
            if slot.generation > 0 or first
        )

    def only_hope(self, *, reported: Callable[[LocalSlot], bool]) -> bool:
        """Return True if all ranks are here and none has answered: the machine is slow, a kill would lose state."""
        left = [slot for slot in self.in_view if slot.alive and slot.generation > 0]
        return len(self.in_view) == self.world_size and not any(map(reported, left))

    @property
    def warm(self) -> int:
        if self.leaving or self.quarantined:
            return 0
        return sum(slot.alive and slot.ready is not None and slot.rank < 0 for slot in self._slots)

    def unresponsive(self) -> list[LocalSlot]:
        return [slot for slot in self._slots if slot.alive and slot.generation > 0 and slot.ready is None]

    def status(self, *, incarnation: int, host: str) -> Status:
        ready = [
            slot
            for slot in self._slots
            if slot.alive
            and slot.ready is not None
            and not slot.finished
            and not (self.quarantined and max(slot.rank, slot.given) < 0)
        ]
        # Scripts that say nothing are started in a place once it has a rank.
        places = ready if self.in_process else self._slots[: self.ranks]
        return Status(
            node=self.node,
            incarnation=incarnation,
            ranks=tuple(self._rank_status(slot, host=host, launcher=incarnation) for slot in places),
            checkpoint_step=max((slot.ready.checkpoint_step for slot in ready if slot.ready), default=-1),
            known_step=self.known_step,
            leaving=self.leaving,
            asked=self.asked,
            places=0 if self.leaving else sum(not slot.finished and slot.blocked is None for slot in self._slots),
            done=any(slot.done for slot in self._slots),
        )

    def place_of(self, slot: LocalSlot, *, launcher: int) -> Slot:
        return Slot(self.node, slot.index, launcher * LIVES + slot.incarnation)

    def _rank_status(self, slot: LocalSlot, *, host: str, launcher: int) -> RankStatus:
        place, ready = self.place_of(slot, launcher=launcher), slot.ready
        if ready is None:
            return RankStatus(slot=place, rank=slot.rank, host=host)
        return RankStatus(
            slot=place,
            rank=max(slot.rank, slot.given) if slot.generation > 0 else -1,
            committed_step=ready.committed_step,
            state=ready.state,
            digest=ready.digest or "",
            host=host,
            port=ready.port,
            snapshots=ready.snapshots,
            twins=ready.twins,
            prepared=ready.prepared,
            part=ready.part,
            built=slot.built,
            moves=slot.moves,
        )
