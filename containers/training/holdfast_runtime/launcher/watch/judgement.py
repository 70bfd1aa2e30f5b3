"""Carries out what ``patience`` says of exceptions of the program, refused state and generations that lead nowhere."""

import signal

from holdfast_runtime.control import Raised, Stop
from holdfast_runtime.launcher.generation import Context, Part
from holdfast_runtime.launcher.links import RaisedAt
from holdfast_runtime.launcher.ranks import LocalSlot
from holdfast_runtime.membership import View
from holdfast_runtime.patience import STEPS, Error, Ledger, Refusals, begun, budget, failed, judged, noted, refused

REPLACE_AFTER_S = 0.3
"""Time for other launchers to report exceptions of the same step: no rank is replaced for what all raise."""
OF_ITS_OWN = {signal.SIGSEGV, signal.SIGBUS, signal.SIGABRT, signal.SIGFPE, signal.SIGILL, signal.SIGSYS}
"""Signals that a process gets for what it does itself."""


class Judgement(Part):
    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._ledger = Ledger(budget=budget(self._options.nodes))
        self._refusals = Refusals()
        self._view = View(generation=0, nodes=())
        self._own: list[Error] = []
        self._shown: set[tuple[int, str]] = set()

    def raised(self, slot: LocalSlot, message: Raised) -> str:
        """Return the reason for another view; empty where the job ends."""
        place = self._slots.place_of(slot, launcher=self._links.identity)
        error = Error(
            step=message.step,
            generation=message.generation,
            process=f"{place.node}/{place.index}/{place.incarnation}",
            what=message.what,
            where=message.where,
        )
        who = f"rank {slot.rank} of node {self._slots.node}"
        text = f"{who} {_described(error)}"
        shown = (error.step, error.what) in self._shown
        self._shown.add((error.step, error.what))
        self._journal.say(text if shown else f"{text}\n{message.traceback.rstrip()}")
        self._ledger = noted(self._ledger, error)
        self._own = [other for other in self._own if other.step == error.step] + [error]
        self._links.broadcast(RaisedAt(error))
        verdict = judged(self._ledger, error, world_size=self._slots.world_size)
        if verdict == "end":
            self._end(text, error)
            return ""
        if error.where == "outside":
            self._ending.notes.append(text)
        elif verdict == "replace" and error.where != "after":
            slot.held = True
            self._later(REPLACE_AFTER_S, self._replace, slot, slot.incarnation, text, error)
        return text

    def heard(self, error: Error) -> None:
        self._ledger = noted(self._ledger, error)
        if error.where == "outside":
            self._ending.notes.append(f"a rank of another node {_described(error)}")
        for own in self._own:
            if own.step == error.step and own.where == "after" and self._verdict(own) == "end":
                self._end(f"the program raised {own.what} in step {own.step}", own)

    def died(self, code: int, *, generation: int, step: int) -> None:
        if code > 0 or -code in OF_ITS_OWN:
            self._ledger = failed(self._ledger, generation=generation, step=step)

    def refused(self, reason: str) -> bool:
        """Return True if the job ends: a local rank is refused its state, and would be in each view that can follow."""
        view = self._view
        places = tuple(item.slot for item in view.ranks)
        plan = places, view.resume_step, view.sources, view.donors, view.parts
        self._refusals = refused(self._refusals, plan=plan, generation=view.generation)
        final = self._refusals.final and -1 not in view.nodes
        if final:
            tries = len(self._refusals.generations)
            self._ending.end(
                1, f"{reason}; {tries} generations of the same processes failed so: trying again does not help"
            )
        return final

    def installed(self, view: View, *, reason: str) -> None:
        self._view = view
        self._ending.notes.clear()
        self._ledger, spent = begun(self._ledger, step=view.resume_step)
        if not spent or self._ending.begun:
            return
        what = {
            "idle": f"{self._ledger.idle} generations in a row ended without a finished step",
            "failing": f"the program itself ended {len(self._ledger.failing)} generations within {STEPS} steps",
        }[spent]
        self._ending.end(1, f"{what}, and {self._ledger.budget} are allowed; the last one because {reason}")

    def _verdict(self, error: Error) -> str:
        return judged(self._ledger, error, world_size=self._slots.world_size)

    def _end(self, text: str, error: Error) -> None:
        if error.where == "outside":
            self._ending.end(1, text)
            return
        same = [other for other in self._ledger.errors if other.step == error.step]
        processes, attempts = len({other.process for other in same}), len({other.generation for other in same})
        self._ending.end(
            1,
            f"{text}; {processes} {'process' if processes == 1 else 'processes'} raised in that step, which was tried "
            f"{attempts} {'time' if attempts == 1 else 'times'}: trying again does not help, see the traceback above",
        )

    def _replace(self, slot: LocalSlot, incarnation: int, text: str, error: Error) -> None:
        if self._ending.begun or slot.incarnation != incarnation or slot.process is None:
            return
        if self._verdict(error) == "end":
            self._end(text, error)
            return
        self._journal.say(f"{text}, failed on retry: replacing the process")
        slot.send(Stop(reason="replaced by another process", exit_code=1))
        self._later(self._deadlines.stop, slot.process.kill)


def _described(error: Error) -> str:
    if error.where != "outside":
        return f"raised {error.what} in step {error.step}"
    return (
        f"was left alone in a collective outside of steps, after {error.step} steps; give work of all ranks to "
        "run.steps(total, between=...), which repeats it, and have each rank take part in it (Lightning: resume from a "
        f"checkpoint): {error.what}"
    )
