"""Limit of retries of a refused state by the same processes and donors."""

from dataclasses import dataclass, replace

TRIES = 3
"""Twice, as with any error in a recovery, and once more because a connection may have been at fault."""


@dataclass(frozen=True)
class Refusals:
    """Generations in which a state was refused to a rank, all of the same plan."""

    plan: tuple[object, ...] = ()
    """What decides where state comes from: processes, their ranks, the step and who gives it."""
    generations: tuple[int, ...] = ()

    @property
    def final(self) -> bool:
        return len(self.generations) >= TRIES


def refused(refusals: Refusals, *, plan: tuple[object, ...], generation: int) -> Refusals:
    if plan != refusals.plan:
        return Refusals(plan, (generation,))
    known = refusals.generations
    return refusals if generation in known else replace(refusals, generations=(*known, generation))
