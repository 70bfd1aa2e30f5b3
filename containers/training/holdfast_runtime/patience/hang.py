"""Ranks that hang: how long each phase may take, and the rank that the others wait for."""

from collections.abc import Sequence
from dataclasses import dataclass

RECOVERING = ("recover", "copy")
ORDER = {"other": 1, "between": 2, "forward": 3, "vote": 4}
"""
Of the phases of one step. ``other`` is what follows the update of the previous one, ``between`` the wait behind work of
all ranks there; a recovery is before all.
"""


@dataclass(frozen=True, kw_only=True)
class Limits:
    """Longest time without a progress report, in seconds."""

    waiting_s: float
    """Of a rank that waits for the others of its step."""
    working_s: float
    """Of a rank that does not: it computes, evaluates or saves."""
    recovering_s: float
    sharded: bool = False
    """Whether ranks wait for each other in forward and backward too."""

    def of(self, phase: str) -> float:
        """Seconds that a rank may stay in a phase."""
        if phase in RECOVERING:
            return self.recovering_s
        return self.waiting_s if phase == "vote" or (self.sharded and phase == "forward") else self.working_s


@dataclass(frozen=True)
class ProgressReport:
    """The last progress report of a rank."""

    rank: int
    step: int
    phase: str
    silent_s: float
    """Since then."""
    blocked: bool = False
    """Whether the kernel holds the process, which does not end by any signal either."""

    @property
    def position(self) -> tuple[int, int]:
        return self.step, ORDER.get(self.phase, 0)


def hang(reports: Sequence[ProgressReport], *, limits: Limits, world_size: int) -> str:
    """
    Return why the ranks of a node have to leave, with the rank at fault; empty where no rank is over its limit.

    The rank at fault is one that the kernel holds, else one that is behind the others. Where all are in the same phase
    of the same step, it is not known before all have been told to leave: it is the one that does not. Until then the
    reason names the ranks that wait as such, and none as the cause.
    """
    late = [report for report in reports if report.silent_s > limits.of(report.phase)]
    if not late:
        return ""
    if recovering := [report for report in late if report.phase in RECOVERING]:
        return _stuck(recovering)
    furthest = max(report.position for report in reports)
    found = [report for report in reports if report.blocked] or [each for each in reports if each.position < furthest]
    if found:
        waiting = [report.rank for report in late if report not in found]
        return _stuck(found) + (f"; {_ranks(waiting)} {'wait' if len(waiting) > 1 else 'waits'}" if waiting else "")
    if len(reports) < world_size and late[0].phase in ("vote", "between"):
        return f"a rank of another node hangs: {_waiting(late)}"
    return f"one rank of the job hangs: {_waiting(late)}" if limits.sharded else _stuck(late)


def blames(reason: str, rank: int) -> bool:
    """Return True if a reason of ``hang`` has this rank at fault, or one of any node that others wait for between two
    steps."""
    return reason.startswith(f"rank {rank} has made no progress") or ("hangs: " in reason and "phase between" in reason)


def _stuck(reports: Sequence[ProgressReport]) -> str:
    last = min(reports, key=lambda report: (report.position, -report.silent_s))
    have = "have" if len(reports) > 1 else "has"
    held = ", held by the kernel" if any(report.blocked for report in reports) else ""
    where = f"in phase {last.phase} of step {last.step}"
    return f"{_ranks([each.rank for each in reports])} {have} made no progress for {last.silent_s:.1f} s {where}{held}"


def _waiting(reports: Sequence[ProgressReport]) -> str:
    last = min(reports, key=lambda report: (report.position, -report.silent_s))
    wait = "wait" if len(reports) > 1 else "waits"
    where = f"in phase {last.phase} of step {last.step}"
    return f"{_ranks([each.rank for each in reports])} {wait} for it since {last.silent_s:.1f} s {where}"


def _ranks(ranks: Sequence[int]) -> str:
    return f"rank {ranks[0]}" if len(ranks) == 1 else f"ranks {sorted(ranks)}"
