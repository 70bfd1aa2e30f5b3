"""Ranks that leave the node before it is taken: who was asked, who has gone, who cannot, and what that costs. Pure."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from holdfast_agent.launchers import JobReport, handed_over
from holdfast_agent.signals import Happening
from holdfast_common import kinds, node_socket


@dataclass
class Leaving:
    """
    The hand-overs of one remedy.

    Args:
        asked: Commands without a last answer: id -> job.
        tasks: Tasks of Slurm whose ranks are gone, and that are to be requeued.
        kept: Jobs whose ranks stay, and why: name -> reason.
        done: Ids that have ended.
        put_off: Ids that could not be, and when the launcher had last said what there is: newer words may be better.
        requeued: Tasks that were.
        abandoned: Ids of launchers that were told to end, since the node is taken.
        is_told: Whether it was told that the node is asked for.
    """

    asked: "dict[str, str]" = field(default_factory=dict)
    tasks: "list[str]" = field(default_factory=list)
    kept: "dict[str, str]" = field(default_factory=dict)
    done: "list[str]" = field(default_factory=list)
    put_off: "dict[str, float]" = field(default_factory=dict)
    requeued: "list[str]" = field(default_factory=list)
    abandoned: "list[str]" = field(default_factory=list)
    is_told: bool = False

    def begin(
        self, jobs: Iterable[JobReport], *, incident: str, reason: str, host: str, urgent: bool = False
    ) -> "tuple[list[tuple[JobReport, node_socket.Command]], list[Happening]]":
        """Ask every job that can to leave, once; what to say to whom, and what there is to tell."""
        orders: list[tuple[JobReport, node_socket.Command]] = []
        told: list[Happening] = []
        for job in jobs:
            name = _id(incident, job)
            if not any(rank.rank >= 0 for rank in job.ranks) or name in self.done:
                continue
            if name in self.asked:
                continue
            if job.heard_s <= self.put_off.get(name, job.heard_s - 1.0):
                continue
            if not job.can_hand_over:
                self.kept[job.job] = "no spare has room for its ranks"
                continue
            self.kept.pop(job.job, None)
            self.asked[name] = job.job
            orders.append((job, _hand_over(name, reason, urgent=urgent)))
            detail = {"incident": incident, "way": "runtime", "host": host}
            if name not in self.put_off:
                told.append(Happening(kind=kinds.REMEDY_REQUESTED, job=job.job, action="hand-over", detail=detail))
        return orders, told

    def again(
        self, jobs: Iterable[JobReport], *, incident: str, reason: str, urgent: bool = False
    ) -> "list[tuple[JobReport, node_socket.Command]]":
        """The same commands to launchers that have connected again: an agent that was killed cannot know more."""
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
        Let launchers end, once: their node is taken, and their jobs are not to end with it.

        A scheduler that ends them sends SIGTERM, which a launcher takes for the end of its job.
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
        """Launchers that have spares here and no rank end, and their tasks wait elsewhere: nothing is lost by that."""
        idle = [job for job in jobs if job.ranks and all(rank.rank < 0 for rank in job.ranks)]
        for job in idle:
            self.requeue(job.task)
        return self.abandon(idle, incident=incident, reason=reason)

    def hear(self, answers: Iterable["tuple[JobReport, node_socket.Answer]"]) -> "list[Happening]":
        """Take what launchers answered."""
        told = []
        for job, answer in answers:
            if answer.command != "hand-over" or answer.id not in self.asked or answer.outcome == "begun":
                continue
            del self.asked[answer.id]
            if answer.outcome in ("later", "failed"):
                self.put_off[answer.id] = job.heard_s
            else:
                self.done.append(answer.id)
            if answer.outcome == "done":
                told.append(handed_over(job, answer))
                self.requeue(job.task)
            else:
                lost = f"; {answer.steps_lost} steps would be lost" if answer.steps_lost else ""
                self.kept[job.job] = f"{answer.reason or answer.outcome}{lost}"
        return told

    def requeue(self, task: str) -> None:
        """Let the scheduler start a task again, elsewhere, once."""
        if task and task not in self.tasks and task not in self.requeued:
            self.tasks.append(task)

    def is_over(self, jobs: Sequence[JobReport]) -> bool:
        """Nobody who was asked is still to answer; one whose launcher has gone will not."""
        there = {job.job for job in jobs}
        return not any(job in there for job in self.asked.values())

    def lost(self, jobs: Sequence[JobReport]) -> "dict[str, str]":
        """Jobs that still have ranks here, and why these did not leave."""
        here = [job for job in jobs if any(rank.rank >= 0 for rank in job.ranks)]
        stay = [job for job in here if job.job in self.kept or not any(name.endswith(_tail(job)) for name in self.done)]
        return {job.job: self.kept.get(job.job, "they did not leave in time") for job in stay}


def _hand_over(name: str, reason: str, *, urgent: bool) -> node_socket.Command:
    return node_socket.Command(id=name, command="hand-over", reason=reason[:400], urgent=urgent)


def _tail(job: JobReport) -> str:
    return f" {job.job} {job.pid}"


def _id(incident: str, job: JobReport) -> str:
    """The same after a restart of the agent, as far as the launcher is the same."""
    return f"{incident[:64]}{_tail(job)[:60]}"
