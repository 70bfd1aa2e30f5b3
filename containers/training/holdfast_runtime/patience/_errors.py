"""
What follows an exception of the program, and how many epochs may pass without a finished step.

A step that raised is tried again once, by the same processes: that helps where the machine was at fault. If it raises
again in the same process, another process takes its place, once: that helps where its device is broken. A step that
raised in two processes and was tried again is the program's own fault, or its data's, and no process can do better.
"""

from dataclasses import dataclass, replace
from typing import Literal

Verdict = Literal["again", "replace", "end"]
"""again: the step is done again by the same processes. replace: the process that raised ends, another takes its rank.
end: the job ends."""

Where = Literal["step", "recovery", "after"]
"""In a step before its update; while a process takes its place in a new epoch; after the update of the step."""

EPOCHS = 20
EPOCHS_PER_NODE = 2
"""Each node may be lost and come back in a row of recoveries; each process of it breaks the epoch at the same time."""


@dataclass(frozen=True)
class Error:
    """An exception of the program."""

    step: int
    """Updates that were finished when the step began in which it was raised."""
    epoch: int
    process: str
    """Names the process among all that the job ever had."""
    what: str
    """The exception, and where in the program it was raised."""
    where: Where


@dataclass(frozen=True)
class Ledger:
    """What a launcher remembers."""

    budget: int
    """Epochs in a row that may end without a step that is finished."""
    newest_step: int = -1
    """The furthest that any epoch began at."""
    idle: int = 0
    """Epochs in a row that began no further than the one before."""
    errors: tuple[Error, ...] = ()
    """Of steps that have not been passed."""


def budget(nodes: int) -> int:
    """Epochs without a finished step that a job of so many launchers has."""
    return EPOCHS + EPOCHS_PER_NODE * nodes


def begun(ledger: Ledger, *, step: int) -> tuple[Ledger, bool]:
    """An epoch begins after so many finished steps; whether the job may go on."""
    if step > ledger.newest_step:
        kept = tuple(error for error in ledger.errors if error.step >= step)
        return replace(ledger, newest_step=step, idle=0, errors=kept), True
    ledger = replace(ledger, idle=ledger.idle + 1)
    return ledger, ledger.idle <= ledger.budget


def noted(ledger: Ledger, error: Error) -> Ledger:
    """The program raised an exception, here or at another launcher."""
    return ledger if error in ledger.errors else replace(ledger, errors=(*ledger.errors, error))


def judged(ledger: Ledger, error: Error, *, world_size: int) -> Verdict:
    """What follows an exception that was noted, with all that are known by now."""
    same = [other for other in ledger.errors if other.step == error.step]
    several = len({other.process for other in same}) > 1
    if error.where == "after":
        return "end" if several else "replace"
    if len({other.epoch for other in same}) < 2:
        return "again"
    # In a recovery it is not known whether anybody else has the state.
    return "end" if several or world_size == 1 or error.where == "recovery" else "replace"
