"""Messages and deaths of the ranks of this node."""

import asyncio
import signal
import time
from dataclasses import dataclass

from holdfast_common import kinds
from holdfast_runtime import control
from holdfast_runtime.control import Change, Cold, Fault, FromRank, Hello, Progress, Put, Raised, Ready, Survives
from holdfast_runtime.launcher.generation import Context, Part
from holdfast_runtime.launcher.node.parts import Parts
from holdfast_runtime.launcher.node.settling import ON_THE_WAY
from holdfast_runtime.launcher.ranks import LocalSlot, Process, kernel_state
from holdfast_runtime.membership import View

BROKEN = "BrokenError: "
"""How a rank reports that its collective has failed: another one is the cause."""
LOST = "is lost"
"""In the reason of a generation that follows the end of a process or of a node."""
TOGETHER = (
    "all ranks leave at one step: give each as many batches, or decide in front of `with step:`, on a value that all "
    "have, such as one in state="
)
LAST_WORDS_S = 0.02
"""Time to read the messages that a process sent before its end."""


@dataclass
class Deaths:
    """Deaths of ranks without a finished step in between, of which ``--max-restarts`` allows some. Pure."""

    most: int
    count: int = 0
    step: int = -1

    def note(self, step: int, *, in_process: bool) -> None:
        self.count = 1 if in_process and step > self.step else self.count + 1
        self.step = step

    def too_many(self, *, in_place: int) -> bool:
        return self.count > self.most or in_place > self.most


class Ranks(Part):
    def __init__(self, context: Context, parts: Parts) -> None:
        super().__init__(context)
        self._parts = parts
        self._deaths = Deaths(self._options.max_restarts)
        self._early = ""
        """Ranks that have ended well where others may be in their loop; empty for none."""
        self._goes_on = ""
        """A rank that has lost a peer in another loop than others have finished; empty for none."""
        self._came_in_between = False
        """Whether a process here became warm while the next generation was agreed on."""

    def receive(self, slot: LocalSlot, message: FromRank) -> None:
        if isinstance(message, Put | Change):
            self._parts.keys.from_rank(slot.index, message)
        elif isinstance(message, Progress):
            if message.phase not in ON_THE_WAY:  # one that recovers has a state that the view may have given up
                self._slots.learn(message.step)
            self._parts.departure.stepped()
            self._parts.watch.moved(message.step)
            of_first = slot.rank == self._parts.record.rank
            self._parts.record.moved(step=message.step, loss=message.loss, total=message.total, of_first=of_first)
            self._parts.settling.moved(slot.index, message.phase)
            if message.phase == "forward" and self._ending.some_lost_behind:
                self._go_on()
        elif isinstance(message, Raised):
            if reason := self._parts.judgement.raised(slot, message):
                self._parts.generations.trouble(reason)
        elif isinstance(message, Survives):
            self._survives(message)
        elif isinstance(message, Hello):
            self._parts.places.warm()
        elif isinstance(message, Ready):
            self._ready(slot, message)
            self._parts.building.look()
        elif isinstance(message, Cold):
            self._parts.building.cold(slot, message.reason)
        elif isinstance(message, Fault):
            self._fault(slot, message)

    def _survives(self, message: Survives) -> None:
        if message != self._slots.survives:
            self._slots.survives = message
            self._journal.tell(f"state in memory: {message.sentence}")

    def exited(self, process: Process, code: int, how: str) -> None:
        self._parts.tasks.spawn(self.ended(process, code, how))

    async def _last_words(self, slot: LocalSlot, process: Process) -> None:
        until_s = time.monotonic() + LAST_WORDS_S
        while process.has_message and not slot.silent.is_set() and time.monotonic() < until_s:
            await asyncio.sleep(LAST_WORDS_S / 20)
        for _ in range(2):  # what has been read is heard in the next turns of the loop
            await asyncio.sleep(0)

    async def ended(self, process: Process, code: int, how: str) -> None:
        slot = self._slots.of(process)
        if slot is not None:
            await self._last_words(slot, process)
        if slot is None or slot.process is not process:  # the job goes on without it already
            self._place_freed(process)
            return
        rank, finished = slot.rank, slot.finished or (code == 0 and not slot.speaks and slot.rank >= 0)
        in_training, step = slot.generation > 0 or not self._slots.in_process, self._slots.known_step
        if rank >= 0 and slot.generation > 0 and not finished:
            self._parts.judgement.died(code, generation=self._slots.view.generation, step=step)
        being_built = slot.spare and slot.built >= 0 and (slot.ready is None or slot.ready.built < 0)
        killed_for = slot.killed_for
        left_early = code == 0 and slot.speaks and rank >= 0 and in_training and not finished
        total = slot.progress.total if slot.progress is not None else 0
        slot.vacate()
        self._parts.departure.warm_changed()
        if self._ending.begun:
            self._ending.end_if_empty()
        elif finished and code == 0:
            slot.finished = True
            self._end_if_apart()
            self._ending.finish_if_all_have()
            self._parts.generations.left()
        elif left_early:
            self._left_early(slot, rank=rank, step=step, total=total)
        elif not self._slots.in_process and self._slots.requested:
            self._parts.generations.left()
        else:
            self._died(slot, rank=rank, how=how, killed_for=killed_for, in_training=in_training, step=step)
            if being_built:
                self._parts.building.died()

    def _left_early(self, slot: LocalSlot, *, rank: int, step: int, total: int) -> None:
        """A rank has left its loop and ended well, as all do that stop early: success, unless others go on."""
        slot.finished = True
        how = f"left run.steps after {step} of {total} steps and ended with exit code 0"
        self._early = f"rank {rank} of node {self._slots.node} {how}"
        self._journal.note(f"rank {rank} {how}")
        if LOST in self._slots.requested:
            self._ending.give_up(f"{self._slots.requested}; {self._early}, so the job cannot go on")
            return
        if self._slots.requested:
            self._end_if_apart("others go on")
            return
        self._ending.finish_if_all_have()
        self._parts.generations.left()

    async def unended(self, process: Process) -> None:
        """
        Go on without a process that has not ended after SIGKILL, as one that a file system or a driver holds.

        It runs no line of its program any more. What it keeps is its device: nothing starts in its place before its
        end where it has one.
        """
        slot = self._slots.of(process)
        if slot is None or self._ending.begun:
            return
        held = f"process {process.pid} is in {kernel_state(process.pid)}"
        slot.killed_for = f"{held}; {slot.killed_for}" if slot.killed_for else held
        if not self._slots.in_process and self._slots.requested:  # all begin again, and no loss is reported
            self._journal.say(f"rank {slot.rank} of node {self._slots.node} does not end after SIGKILL: {held}")
        if self._slots.in_process and process.has_device:
            slot.blocked = process
        await self.ended(process, -signal.SIGKILL, "it does not end after SIGKILL")
        if process.ended:
            self._place_freed(process)

    def _place_freed(self, process: Process) -> None:
        for slot in self._slots:
            if slot.blocked is process:
                slot.blocked = None
                self._journal.say(f"process {process.pid} has ended, late after SIGKILL")
                self._parts.places.fill(slot)

    def _fault(self, slot: LocalSlot, fault: Fault) -> None:
        who = f"rank {slot.rank} of node {self._slots.node}"
        waits = fault.reason.startswith(BROKEN) and not fault.fatal
        reason = f"{who} has lost a peer: {fault.reason}" if waits else f"{who}: {fault.reason}"
        if waits and slot.finished:  # it has begun another loop, and no step of it
            slot.finished = slot.last_wait = False
        if fault.fatal:
            self._ending.end(1, reason)
        elif self._early or (self._ending.some_finished and not self._slots.some_finished and not slot.last_wait):
            self._early = self._early or "all ranks of another node have ended"
            self._end_if_apart(f"{who} goes on")
        elif self._ending.some_lost_behind and not slot.last_wait:
            self._go_on()
        elif self._slots.some_finished and not self._slots.begun_again:
            # A rank that passed the last barrier has closed its connections before this one had passed it.
            slot.finished = True
            slot.send(control.Stop(reason="all ranks have finished", exit_code=0))
        elif self._slots.begun_again and not self._ending.some_lost_behind:
            self._end_if_apart(f"{who} goes on in another loop")
        elif not (slot.copies and self._parts.judgement.refused(reason)):
            self._parts.generations.trouble(reason)

    def _end_if_apart(self, goes_on: str = "") -> None:
        """A rank has ended well, which may become known before or after another one that goes on misses it."""
        self._goes_on = goes_on or self._goes_on
        behind = (
            f"rank {slot.rank} has ended with exit code 0" for slot in self._slots if slot.finished and not slot.alive
        )
        if self._goes_on and (ended := self._early or next(behind, "")):
            self._ending.end(1, f"{ended}, and {self._goes_on}; {TOGETHER}")

    def _ready(self, slot: LocalSlot, ready: Ready) -> None:
        if slot.awaited is not None:
            slot.take(slot.awaited)
            return
        self._slots.learn(ready.committed_step)
        self._slots.checkpoint_step = max(self._slots.checkpoint_step, ready.checkpoint_step)
        if ready.torn:
            self._ending.notes.append(f"rank {slot.rank} of node {self._slots.node}: {ready.torn}")
        new, generations = slot.generation == 0, self._parts.generations
        self._parts.departure.warm_changed()
        if ready.planned and not self._slots.requested and slot.rank >= 0:
            generations.trouble(ready.reason, planned=True)
        if self._slots.requested:
            came = new and not generations.first
            self._came_in_between |= came  # before the others hear of it: they may agree at once
            generations.left()
            if came:
                generations.agreement.changed()
        elif generations.first and self._slots.all_left(first=True) and self._slots.in_view:
            generations.trouble("all local ranks are ready")
        elif ready.built < 0 and (not generations.belongs_to(self._slots.view) or (new and not self._slots.in_view)):
            self._spare_ready()

    def installed(self, view: View) -> None:
        has_ranks = any(item.slot.node == self._slots.node for item in view.ranks)
        if self._came_in_between and not has_ranks and self._slots.warm:
            self._spare_ready()
        self._came_in_between, self._goes_on = False, ""

    def _spare_ready(self) -> None:
        self._journal.event(kinds.SPARE_READY, spares=sum(slot.ready is not None for slot in self._slots))

    def _died(self, slot: LocalSlot, *, rank: int, how: str, killed_for: str, in_training: bool, step: int) -> None:
        who = f"rank {rank}" if rank >= 0 else "a spare"
        evidence = f"{how}: {killed_for}" if killed_for else how
        reason = f"{who} of node {self._slots.node} is lost: {evidence}"
        if rank >= 0:  # the reason of the next generation, or of the end
            self._journal.note(reason)
        else:
            self._journal.say(reason)
        self._journal.died(how.removeprefix("it "))
        self._journal.event(kinds.RANK_LOST, evidence=evidence, rank=rank, step=step)
        if self._slots.in_process and (self._ending.some_finished or self._slots.some_finished):
            if not self._slots.begun_again:
                self._ending.lost_behind(slot, reason)
                return
            self._all_come_again()
        if rank >= 0 and in_training and not self._slots.requested:  # all that die of one fault count once
            self._deaths.note(step, in_process=self._slots.in_process)
        if self._deaths.too_many(in_place=slot.deaths):
            limit = f"--max-restarts allows {self._deaths.most} without progress in between"
            self._ending.end(1, f"{reason}; {limit}")
            return
        if rank >= 0:
            self._parts.generations.trouble(reason)
        self._fill(slot)

    def _all_come_again(self) -> None:
        for slot in self._slots.in_view:
            slot.finished = False

    def _go_on(self) -> None:
        """A rank has begun another loop: what was lost behind the last one is replaced."""
        lost = self._ending.go_on()
        self._all_come_again()
        self._parts.generations.trouble(lost[0][1])
        for slot, _ in lost:
            self._fill(slot)

    def _fill(self, slot: LocalSlot) -> None:
        if self._slots.in_process:
            warm = any(other.ready is not None and other.rank < 0 for other in self._slots)
            if self._slots.view.spares or warm:
                self._parts.places.fill_later(slot)
            else:
                self._parts.places.fill(slot)
            self._parts.generations.left()
