"""
Failures of independent jobs on one node. Pure.

A job reports only its own processes, as verified by the kernel: a process ended here, and its launcher started another.
One job, or all jobs of one user, may have a bug of their own; jobs of different users share only the node.
"""

from collections.abc import Sequence

from holdfast_agent.launchers import JobReport, independent

WINDOW_S = 3600.0
USERS = 2
MOST_PROCESSES = 4096


class Agreement:
    def __init__(self) -> None:
        self._ranks: dict[int, dict[int, int]] = {}
        """Connection -> rank -> the process that had it last."""
        self._seen: dict[int, set[int]] = {}
        self._losses: dict[int, tuple[float, JobReport]] = {}
        """User -> time of the latest failure."""

    def hear(self, jobs: Sequence[JobReport], *, boot_s: float) -> str:
        """Return the evidence; empty without an agreement."""
        for job in jobs:
            if self._has_lost(job):
                self._losses[job.uid] = (boot_s, job)
        here = {job.connection for job in jobs}
        self._ranks = {number: ranks for number, ranks in self._ranks.items() if number in here}
        self._seen = {number: seen for number, seen in self._seen.items() if number in here}
        self._losses = {uid: loss for uid, loss in self._losses.items() if boot_s - loss[0] <= WINDOW_S}
        losers = [job for _, job in self._losses.values()]
        if independent(losers) < USERS:
            return ""
        names = ", ".join(f"{job.job} of user {job.uid}" for job in sorted(losers, key=lambda one: one.uid)[:8])
        return f"processes of jobs {names} failed here within an hour and were restarted"

    def _has_lost(self, job: JobReport) -> bool:
        pids = {rank.pid for rank in job.ranks}
        known, seen = self._ranks.setdefault(job.connection, {}), self._seen.setdefault(job.connection, set())
        is_new = bool(seen) and bool(pids - seen)
        gone = [rank for rank, pid in known.items() if pid not in pids]
        lost = bool(gone) and is_new
        if lost:
            for rank in gone:
                del known[rank]
        known.update({rank.rank: rank.pid for rank in job.ranks if rank.rank >= 0})
        if len(seen) < MOST_PROCESSES:
            seen |= pids
        return lost
