"""Reasons for which no view can follow a loss: no process has the state, or an older one than the job accepts."""

from collections.abc import Sequence
from dataclasses import dataclass

SHOWN = 8
"""Ranks that are named; of more only the number."""


@dataclass(frozen=True)
class LostState:
    """State that no process of a job has."""

    newest: int
    """The newest step that was committed."""
    gone: tuple[int, ...] = ()
    """Ranks of the committed view whose processes are lost."""
    missing: tuple[int, ...] = ()
    """Ranks of a sharded job whose part of the state no process has, in use or as a snapshot. Default: no such job"""
    done: bool = False
    """Whether all steps of the program were done."""

    def without_checkpoint(self) -> str:
        return "; ".join([*self._begun(), f"{self._nowhere()}, and there is no checkpoint", *self._ranks()])

    def older(self, step: int, *, stored: bool, allowed: int) -> str:
        steps = self.newest - step
        refused = f"going on from step {step} would lose {steps} committed steps, and {allowed} are allowed"
        found = [f"the newest complete checkpoint is of step {step}"] if stored else []
        return "; ".join([*self._begun(), refused, *self._ranks(), *found, f"--allow-loss {steps} accepts going back"])

    def _begun(self) -> list[str]:
        return [f"all {self.newest} steps are done, only the end was not reached"] if self.done else []

    def _nowhere(self) -> str:
        return f"no process has the state of step {self.newest}"

    def _ranks(self) -> list[str]:
        gone = [f"{named(self.gone)} {'is' if len(self.gone) == 1 else 'are'} lost"] if self.gone else []
        missing = [f"no process has the state of {named(self.missing)}"] if self.missing else []
        return [", and ".join([*gone, *missing])] if gone or missing else []


def named(ranks: Sequence[int]) -> str:
    more = f" and {len(ranks) - SHOWN} more" if len(ranks) > SHOWN else ""
    return ("rank " if len(ranks) == 1 else "ranks ") + ", ".join(map(str, ranks[:SHOWN])) + more
