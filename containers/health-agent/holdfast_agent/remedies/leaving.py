"""Hand-overs before a node is taken, or its software is replaced: requested, done, failed, and their cost."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Optional

from holdfast_agent.launchers import JobReport, handed_over
from holdfast_agent.signals import Happening
from holdfast_common import kinds, node_socket

INCIDENT = "leave"
"""Incident of a departure that an operator requests."""


@dataclass
class Leaving:
    """
    Hand-overs of one remedy.

    Args:
        asked: Commands without a last answer: id -> job.
        tasks: Slurm tasks without ranks, to be requeued.
        kept: Jobs whose ranks stay: name -> reason.
        done: Finished ids.
        put_off: Ids that failed, and the time of the launcher's last report: a newer one may allow a retry.
        requeued: Tasks already requeued.
        abandoned: Ids of launchers told to exit, since the node is taken.
    """

    asked: "dict[str, str]" = field(default_factory=dict)
    tasks: "list[str]" = field(default_factory=list)
    kept: "dict[str, str]" = field(default_factory=dict)
    done: "list[str]" = field(default_factory=list)
    put_off: "dict[str, float]" = field(default_factory=dict)
    requeued: "list[str]" = field(default_factory=list)
    abandoned: "list[str]" = field(default_factory=list)

    def begin(
        self, jobs: Iterable[JobReport], *, incident: str, reason: str, host: str, urgent: bool = False
    ) -> "tuple[list[tuple[JobReport, node_socket.Command]], list[Happening]]":
        """Ask each job that can to hand over, once; return commands and events."""
        orders: list[tuple[JobReport, node_socket.Command]] = []
        reported: list[Happening] = []
        for job in jobs:
            name = _id(incident, job)
            if not any(rank.rank >= 0 for rank in job.ranks) or name in self.done:
                continue
            if name in self.asked:
                continue
            if job.received_s <= self.put_off.get(name, job.received_s - 1.0):
                continue
            if not job.can_hand_over:
                self.kept[job.job] = "no spare has capacity for its ranks"
                continue
            self.kept.pop(job.job, None)
            self.asked[name] = job.job
            orders.append((job, _hand_over(name, reason, urgent=urgent)))
            detail = {"incident": incident, "way": "runtime", "host": host}
            if name not in self.put_off:
                reported.append(Happening(kind=kinds.REMEDY_REQUESTED, job=job.job, action="hand-over", detail=detail))
        return orders, reported

    def again(
        self, jobs: Iterable[JobReport], *, incident: str, reason: str, urgent: bool = False
    ) -> "list[tuple[JobReport, node_socket.Command]]":
        """Repeat commands to launchers that reconnected: a killed agent's commands may be lost."""
        self.put_off.clear()  # by a clock that may have begun anew
        return [
            (job, _hand_over(_id(incident, job), reason, urgent=urgent))
            for job in jobs
            if _id(incident, job) in self.asked
        ]

    def abandon(
        self, jobs: Iterable[JobReport], *, incident: str, reason: str
    ) -> "list[tuple[JobReport, node_socket.Command]]":
        """
        Let launchers exit, once: their node is taken, and their jobs must survive.

        A scheduler would send SIGTERM, which a launcher takes for the end of its job.
        """
        orders = []
        for job in jobs:
            name = f"abandon {_id(incident, job)}"
            if name not in self.abandoned:
                self.abandoned.append(name)
                orders.append((job, node_socket.Command(id=name, command="abandon", reason=reason[:400])))
        return orders

    def let_go(
        self, jobs: Iterable[JobReport], *, incident: str, reason: str
    ) -> "list[tuple[JobReport, node_socket.Command]]":
        """Let launchers with spares and no ranks exit; their tasks wait elsewhere."""
        idle = [job for job in jobs if job.ranks and all(rank.rank < 0 for rank in job.ranks)]
        for job in idle:
            self.requeue(job.task)
        return self.abandon(idle, incident=incident, reason=reason)

    def hear(self, answers: Iterable["tuple[JobReport, node_socket.Answer]"]) -> "list[Happening]":
        reported = []
        for job, answer in answers:
            if answer.command != "hand-over" or answer.id not in self.asked or answer.outcome == "begun":
                continue
            del self.asked[answer.id]
            if answer.outcome in ("later", "failed"):
                self.put_off[answer.id] = job.received_s
            else:
                self.done.append(answer.id)
            if answer.outcome == "done":
                reported.append(handed_over(job, answer))
                self.requeue(job.task)
            else:
                lost = f"; {answer.steps_lost} steps would be lost" if answer.steps_lost else ""
                self.kept[job.job] = f"{answer.reason or answer.outcome}{lost}"
        return reported

    def requeue(self, task: str) -> None:
        if task and task not in self.tasks and task not in self.requeued:
            self.tasks.append(task)

    def is_over(self, jobs: Sequence[JobReport]) -> bool:
        """True if no answer is open; a launcher that is gone will not answer."""
        there = {job.job for job in jobs}
        return not any(job in there for job in self.asked.values())

    def lost(self, jobs: Sequence[JobReport]) -> "dict[str, str]":
        here = [job for job in jobs if any(rank.rank >= 0 for rank in job.ranks)]
        stay = [job for job in here if job.job in self.kept or not any(name.endswith(_tail(job)) for name in self.done)]
        return {job.job: self.kept.get(job.job, "the ranks did not leave in time") for job in stay}


def leave_request(status_path: Path) -> Path:
    """Return the request file, beside the status socket: on tmpfs, so that no boot inherits it."""
    return status_path.with_name("leave")


class Departure:
    """
    Lets launchers leave this node while a request file of ``holdfast-agent leave`` exists.

    Args:
        request: File with the reason; None: no such requests.
    """

    def __init__(self, *, request: Optional[Path], host: str) -> None:
        self._request, self._host = request, host
        self._leaving = Leaving()
        self._reason = ""

    def step(
        self, jobs: "Sequence[JobReport]", answers: "Sequence[tuple[JobReport, node_socket.Answer]]"
    ) -> "tuple[list[tuple[JobReport, node_socket.Command]], list[Happening]]":
        """Return commands to launchers, and events of finished hand-overs."""
        reported = self._leaving.hear(answers)
        before, self._reason = self._reason, self._read()
        if not self._reason:
            if before:
                self._leaving = Leaving()
            return [], reported
        orders, _ = self._leaving.begin(jobs, incident=INCIDENT, reason=self._reason, host=self._host)
        idle = self._leaving.let_go(jobs, incident=INCIDENT, reason=self._reason)
        return [*orders, *idle], reported

    def status(self) -> "dict[str, Any]":
        """Reason; jobs that stay, with the reason."""
        return {"reason": self._reason, "kept": dict(self._leaving.kept)}

    def _read(self) -> str:
        if self._request is None:
            return ""
        try:
            return self._request.read_text(errors="replace").strip()[:200]
        except OSError:
            return ""


def _hand_over(name: str, reason: str, *, urgent: bool) -> node_socket.Command:
    return node_socket.Command(id=name, command="hand-over", reason=reason[:400], urgent=urgent)


def _tail(job: JobReport) -> str:
    return f" {job.job} {job.pid}"


def _id(incident: str, job: JobReport) -> str:
    """Command id; survives a restart of the agent."""
    return f"{incident[:64]}{_tail(job)[:60]}"
