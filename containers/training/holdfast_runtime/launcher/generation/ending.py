"""The end of a launcher: all ranks of all nodes have finished, the job cannot go on, or a signal came."""

import asyncio
import signal

from holdfast_common import kinds
from holdfast_runtime.control import Deadlines, Stop
from holdfast_runtime.launcher.generation.journal import Journal
from holdfast_runtime.launcher.generation.record import Record
from holdfast_runtime.launcher.links import Done, Links
from holdfast_runtime.launcher.ranks import LocalSlot, LocalSlots, kernel_state

_NO_STATE = "where no state is left to go on from"


class Ending:
    """End of this launcher."""

    def __init__(
        self, *, slots: LocalSlots, links: Links, journal: Journal, record: Record, deadlines: Deadlines
    ) -> None:
        self._slots = slots
        self._links = links
        self._journal = journal
        self._record = record
        self._deadlines = deadlines
        self._loop = asyncio.get_running_loop()
        self._finished: set[int] = set()
        """Nodes whose ranks have all ended well."""
        self._lost_nodes: set[int] = set()
        self._code = 0
        self.reason = ""
        self._lost: list[tuple[LocalSlot, str]] = []
        """Places of ranks lost after the last step of a loop, with reasons, until the others have ended or gone on."""
        self.notes: list[str] = []
        """Of this generation: why the state of a rank is missed, as after a collective outside of steps."""
        self.begun = self._signalled = False
        self.exit_code: asyncio.Future[int] = self._loop.create_future()
        """There once no process is left."""

    @property
    def some_finished(self) -> bool:
        return bool(self._finished)

    def has_finished(self, node: int) -> bool:
        return node in self._finished

    def forget(self, node: int) -> None:
        self._finished.discard(node)
        self._lost_nodes.discard(node)

    def node_lost(self, node: int) -> None:
        self._lost_nodes.add(node)
        self.finish_if_all_have()

    def forget_all(self) -> None:
        self._finished.clear()

    @property
    def some_lost_behind(self) -> bool:
        return bool(self._lost)

    def lost_behind(self, slot: LocalSlot, reason: str) -> None:
        """
        A rank is lost after all have finished a loop.

        The others end by themselves, so that what they save is whole, and then the job ends; or they begin another
        loop, and ``go_on`` follows.
        """
        self._journal.tell(f"{reason}, after the last step of run.steps: waiting for the other ranks to end or go on")
        self._lost.append((slot, reason))
        self._end_if_lost()

    def go_on(self) -> list[tuple[LocalSlot, str]]:
        """Return the losses, which are no end of the job any more."""
        lost, self._lost = self._lost, []
        return lost

    def _end_if_lost(self) -> None:
        if self._lost and not any(slot.alive for slot in self._slots.in_view):
            self.give_up(f"{self._lost[0][1]}, after the last step of run.steps, {_NO_STATE}")

    def finish_if_all_have(self) -> None:
        if self._lost:
            self._end_if_lost()
            return
        node, ranks = self._slots.node, self._slots.in_view
        if ranks and all(slot.finished and not slot.alive for slot in ranks) and node not in self._finished:
            self._finished.add(node)
            self._links.broadcast(Done(exit_code=0, reason="all ranks have finished"))
        nodes = {item.slot.node for item in self._slots.view.ranks}
        if nodes and nodes <= self._finished:
            self.end(0, "")
        elif node in self._finished and (lost := nodes & self._lost_nodes - self._finished):
            self.give_up(f"node {min(lost)} is lost, after the last step of run.steps, {_NO_STATE}")

    def peer_done(self, node: int, done: Done) -> None:
        if done.exit_code:
            self.end(done.exit_code, done.reason, tell=False)
            return
        self._finished.add(node)
        self.finish_if_all_have()

    def depart(self, code: int, reason: str, *, at_once: bool = False) -> None:
        """
        This node has no part in the job any more, which goes on: nobody is told to stop but the processes here.

        Args:
            at_once: Kill them. Default: they have the time ``stop`` to end.
        """
        if self.begun:
            return
        self._journal.say(reason)
        self._stop(code, reason, processes_code=0)
        for slot in self._slots if at_once else ():
            slot.kill(reason)

    def give_up(self, reason: str) -> None:
        self.end(1, "; ".join([reason, *self.notes[:1]]))

    def signalled(self, number: int) -> None:
        name = signal.Signals(number).name
        if self.begun:
            return
        self._journal.note(f"{name}: ending")
        self._signalled = True
        for slot in self._slots:
            if slot.process is not None:
                slot.process.kill(signal.SIGINT if number == signal.SIGINT else signal.SIGTERM)
        self.end(128 + number, f"node {self._slots.node} got {name}")

    def end(self, code: int, reason: str, *, tell: bool = True) -> None:
        if self.begun:
            return
        summary = self._record.summary()
        if summary:
            self._journal.tell(f"{'stopped' if code else 'finished'}: {summary}")
        if code:
            self._journal.tell(f"the job ends: {reason}")
            self._journal.event(kinds.JOB_STOPPED, evidence=reason, exit_code=code)
            if tell:
                self._links.broadcast(Done(exit_code=code, reason=reason))
        else:
            self._record.finished()
        self._stop(code, reason, processes_code=code)

    def _stop(self, code: int, reason: str, *, processes_code: int) -> None:
        self.begun = True
        self._code, self.reason = code, reason
        for slot in self._slots:
            slot.send(Stop(reason=reason, exit_code=processes_code))
            if not self._slots.in_process and slot.process is not None and not self._signalled:
                slot.process.kill(signal.SIGTERM)
        self._loop.call_later(self._deadlines.stop, self._kill_all)
        self.end_if_empty()

    def end_if_empty(self) -> None:
        if not any(slot.alive for slot in self._slots) and not self.exit_code.done():
            self.exit_code.set_result(self._code)

    def _kill_all(self) -> None:
        for slot in self._slots:
            if slot.process is None:
                continue
            if slot.rank >= 0:
                self._journal.say(
                    f"rank {slot.rank} has not ended {self._deadlines.stop:g} s after SIGTERM and is killed; what it "
                    "was saving may be cut off. For more time: --deadlines stop=SECONDS, at most Slurm's KillWait"
                )
            slot.process.kill()
        self._loop.call_later(self._deadlines.stop, self._abandon)

    def _abandon(self) -> None:
        left = [(slot.rank, slot.process.pid) for slot in self._slots if slot.process is not None]
        if left and not self.exit_code.done():
            for rank, pid in left:
                who = f"rank {rank}" if rank >= 0 else "a spare"
                self._journal.say(f"{who} does not end after SIGKILL: process {pid} is in {kernel_state(pid)}")
            self.exit_code.set_result(self._code or 1)
