"""
Restart of processes that a kernel log line names and that stand still. Pure.

NVIDIA's class RESTART_APP means that the process cannot continue with its GPU. Most exit, and their launcher sees
that. A process that makes steps is left alone; one that makes none for half a minute blocks its job.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from holdfast_agent.launchers.job_report import JobReport
from holdfast_agent.signals import Happening
from holdfast_common import kinds, node_socket

GRACE_S = 30.0
FORGOTTEN_AFTER_S = 600.0
MOST_ACCUSED = 64


@dataclass(frozen=True)
class Accused:
    """A process named in a line of an incident; ``step``: finished when first seen, -1: not seen yet."""

    incident: str
    fault: str
    evidence: str
    since_s: float
    step: int = -1


class RestartRequests:
    """Sends commands if ``acts``; otherwise only reports them."""

    def __init__(self, *, acts: bool, host: str) -> None:
        self._acts, self._host = acts, host
        self._accused: dict[int, Accused] = {}
        self._done: list[str] = []

    def accuse(self, pids: Iterable[int], *, incident: str, fault: str, evidence: str, boot_s: float) -> None:
        for pid in pids:
            if pid > 1 and pid not in self._accused and f"{incident} {pid}" not in self._done:
                self._accused[pid] = Accused(incident=incident, fault=fault, evidence=evidence, since_s=boot_s)
        while len(self._accused) > MOST_ACCUSED:
            del self._accused[next(iter(self._accused))]

    def withdraw(self, incident: str) -> None:
        self._accused = {pid: one for pid, one in self._accused.items() if one.incident != incident}

    def step(
        self, jobs: Sequence[JobReport], *, boot_s: float
    ) -> "tuple[list[tuple[JobReport, node_socket.Command]], list[Happening]]":
        orders: list[tuple[JobReport, node_socket.Command]] = []
        reported: list[Happening] = []
        ranks = {rank.pid: (job, rank) for job in jobs for rank in job.ranks if rank.rank >= 0}
        for pid, one in [*self._accused.items()]:
            if pid not in ranks:
                if boot_s - one.since_s > FORGOTTEN_AFTER_S:
                    del self._accused[pid]
                continue
            job, rank = ranks[pid]
            if one.step < 0:
                self._accused[pid] = one = Accused(**{**asdict(one), "step": rank.step})
            if rank.step > one.step:
                del self._accused[pid]
            elif boot_s - one.since_s >= GRACE_S:
                del self._accused[pid]
                self._done = [*self._done[-255:], f"{one.incident} {pid}"]
                order = node_socket.Command(
                    id=f"{one.incident[:64]} {job.job} {pid}"[:120],
                    command="restart",
                    reason=f"{one.fault}: {one.evidence}"[:400],
                    ranks=(rank.rank,),
                )
                orders += [(job, order)] if self._acts else []
                reported.append(self._event(one, job, rank.rank))
        return orders, reported

    def _event(self, one: Accused, job: JobReport, rank: int) -> Happening:
        detail: dict[str, Any] = {"incident": one.incident, "way": "runtime", "host": self._host, "rank": rank}
        kind, why = kinds.REMEDY_REQUESTED, one.evidence
        if not self._acts:
            kind, why, detail["why"] = kinds.REMEDY_REFUSED, f"observe: rank {rank} would be restarted", "observe"
        return Happening(kind=kind, job=job.job, fault=one.fault, evidence=why, action="restart-process", detail=detail)

    def snapshot(self) -> "dict[str, Any]":
        return {"accused": {str(pid): asdict(one) for pid, one in self._accused.items()}, "done": self._done}

    def restore(self, snapshot: "Mapping[str, Any]") -> None:
        """Resume in the same boot; raises KeyError, TypeError or ValueError."""
        self._accused = {int(pid): Accused(**one) for pid, one in snapshot["accused"].items()}
        self._done = [str(one) for one in snapshot["done"]]
