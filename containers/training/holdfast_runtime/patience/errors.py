"""
Retries after exceptions of the program, and the budget of generations without a finished step.

A step that raised is tried again once, by the same processes: that helps where the machine was at fault. If it raises
again in the same process, another process takes its place, once: that helps where its device is broken. A step that
raised in two processes and was tried again is the program's own fault, or its data's, and no process can do better.
A collective outside of steps that was left is no fault of the program, but the process ends with it: what stands behind
has not run. It ends the job in a second generation, as where a rank waits there for others that do not come.

A program that fails in one step after the other, each of which another try gets done, has a budget, too.
"""

from dataclasses import dataclass, replace
from typing import Literal

Verdict = Literal["again", "replace", "end"]
"""again: the step is done again by the same processes. replace: the process that raised ends, another takes its rank.
end: the job ends."""

Where = Literal["step", "recovery", "after", "outside"]
"""In a step before its update; while a process takes its place in a new generation; after the update of the step;
outside of steps, in a collective that was left because a peer was lost or did not come."""

GENERATIONS = 20
GENERATIONS_PER_NODE = 2
"""Each node may be lost and come back in a row of recoveries; each of its processes breaks the generation then."""
STEPS = 100
"""Of so many steps in a row, each generation that the program ended itself counts."""
Spent = Literal["", "idle", "failing"]
"""Which budget is used up: of generations without a finished step, or of those that the program ended itself."""


@dataclass(frozen=True)
class Error:
    """An exception of the program."""

    step: int
    """Updates that were finished when the step began in which it was raised."""
    generation: int
    process: str
    """Names the process among all that the job ever had."""
    what: str
    """The exception, and where in the program it was raised."""
    where: Where


@dataclass(frozen=True)
class Ledger:
    """Memory of a launcher."""

    budget: int
    """Generations in a row that may end without a step that is finished."""
    newest_step: int = -1
    """The furthest that any generation began at."""
    idle: int = 0
    """Generations in a row that began no further than the one before."""
    errors: tuple[Error, ...] = ()
    """Of steps that have not been passed."""
    failing: tuple[tuple[int, int], ...] = ()
    """Generations that the program ended itself, within the newest ``STEPS`` steps: generation and step of each."""


def budget(nodes: int) -> int:
    return GENERATIONS + GENERATIONS_PER_NODE * nodes


def begun(ledger: Ledger, *, step: int) -> tuple[Ledger, Spent]:
    if step > ledger.newest_step:
        kept = tuple(error for error in ledger.errors if error.step >= step)
        ledger = replace(ledger, newest_step=step, idle=0, errors=kept)
    else:
        ledger = replace(ledger, idle=ledger.idle + 1)
    if ledger.idle > ledger.budget:
        return ledger, "idle"
    return ledger, "failing" if len(ledger.failing) > ledger.budget else ""


def noted(ledger: Ledger, error: Error) -> Ledger:
    if error in ledger.errors:
        return ledger
    return failed(replace(ledger, errors=(*ledger.errors, error)), generation=error.generation, step=error.step)


def failed(ledger: Ledger, *, generation: int, step: int) -> Ledger:
    if any(generation == known for known, _ in ledger.failing):
        return ledger
    kept = tuple(item for item in ledger.failing if item[1] > step - STEPS)
    return replace(ledger, failing=(*kept, (generation, step)))


def judged(ledger: Ledger, error: Error, *, world_size: int) -> Verdict:
    same = [other for other in ledger.errors if other.step == error.step]
    if error.where == "outside":
        return "end" if len({other.generation for other in same if other.where == "outside"}) > 1 else "replace"
    several = len({other.process for other in same}) > 1
    if error.where == "after":
        return "end" if several else "replace"
    if len({other.generation for other in same}) < 2:
        return "again"
    # In a recovery it is not known whether anybody else has the state.
    return "end" if several or world_size == 1 or error.where == "recovery" else "replace"
