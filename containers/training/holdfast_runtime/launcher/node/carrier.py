"""Carries generations to the processes of this node: out of the one that ends, and into the one that begins."""

import signal
import time

from holdfast_runtime import control
from holdfast_runtime.launcher.generation import Context, Part
from holdfast_runtime.launcher.keys import KeyRelay
from holdfast_runtime.launcher.node.places import Places
from holdfast_runtime.launcher.ranks import LAST_ONES, LocalSlot, rank_views
from holdfast_runtime.membership import Slot, View


class Carrier(Part):
    def __init__(self, context: Context, *, places: Places, keys: KeyRelay) -> None:
        super().__init__(context)
        self._places = places
        self._keys = keys

    def leave(self, generation: int, reason: str) -> None:
        """Have all local ranks leave their collectives; who has not done it in time is killed."""
        for slot in self._slots:
            slot.expect(None)
            if not self._slots.in_process and slot.process is not None:
                slot.process.kill(signal.SIGTERM)
            elif slot.alive and slot.ready is None:
                slot.send(control.Leave(generation=generation, reason=reason))
        self._later(self._deadlines.leave, self._kill_those_that_stay, generation)

    def restart(self, view: View) -> None:
        self._ending.forget_all()
        self._places.refill(view)

    def give(self, view: View, *, mine: bool) -> list[str]:
        """
        Tell the local ranks their places.

        Args:
            mine: Whether the view gives ranks to this launcher, or takes some from it that give their state.

        Returns:
            Reasons for the next view: ranks that died meanwhile.
        """
        views = rank_views(view, node=self._slots.node) if mine else ()
        died = [message.rank for place, message in views if not self._give(message, place)]
        self._keys.share()
        for slot in self._slots:
            if slot.rank < 0:
                self._places.fill_later(slot)
        return [f"rank {rank} of node {self._slots.node} died while it was chosen" for rank in died]

    def _kill_those_that_stay(self, generation: int, passed: int = 1) -> None:
        if self._slots.view.generation >= generation or self._ending.begun:
            return
        hope = self._slots.in_process and self._slots.only_hope(reported=lambda slot: slot.ready is not None)
        if hope and passed < LAST_ONES:
            self._later(self._deadlines.leave, self._kill_those_that_stay, generation, passed + 1)
            return
        for slot in self._slots.unresponsive() if self._slots.in_process else self._slots:
            if slot.process is not None:
                late = f"not left within {passed * self._deadlines.leave:g} s"
                self._journal.say(f"rank {slot.rank} has {late} and is killed{_last_report(slot)}")
                slot.kill(f"it had {late}{_last_report(slot)}")

    def _give(self, view: control.View, place: Slot) -> bool:
        """Tell a rank its place; return False if it died meanwhile."""
        rank, slot = view.rank, self._slots[place.index]
        if rank < 0:
            if self._slots.place_of(slot, launcher=self._links.identity) == place:
                slot.send(view)
            return True
        if not slot.alive or self._slots.place_of(slot, launcher=self._links.identity) != place:
            self._places.fill(slot)
            return False
        if slot.generation == 0 and slot.ready is None:  # it has given way meanwhile, and the next one has not come yet
            slot.expect(view)
            return True
        if slot.built >= 0 and (view.plan.source == "fresh" or not (slot.built == rank or slot.moves)):
            self._journal.note(f"replacing the spare that was built for rank {slot.built} by a new process")
            self._places.replace(slot)
            slot.expect(view)
            return True
        slot.take(view)
        return True


def _last_report(slot: LocalSlot) -> str:
    if slot.progress is None:
        return ""
    silent_s = time.monotonic() - slot.heard_s
    return f"; no progress for {silent_s:.1f} s in phase {slot.progress.phase} of step {slot.progress.step}"
