"""What a launcher said, after the kernel was asked whether it may say so."""

from collections.abc import Iterable
from dataclasses import dataclass

from holdfast_agent.signals import Happening
from holdfast_common import kinds, node_socket


@dataclass(frozen=True)
class JobReport:
    """
    One launcher of this node.

    Args:
        connection: Tells launchers of this agent apart, also those of one job.
        uid: Whose job it is, by the kernel.
        pid: Of the launcher, as the agent's node has it.
        heard_s: When it said this, by the clock of the socket.
        job: As in events.
        task: Slurm's number of the task; empty elsewhere.
        run: Its ``--rdzv-id``.
        node: Number of this node in the run.
        epoch: Generation of the view.
        step: The newest step that it knows of.
        spares: Warm processes of other nodes that could take its ranks.
        ranks: Its living processes; pids are those of the agent's node.
    """

    connection: int
    uid: int
    pid: int
    heard_s: float
    job: str
    task: str
    run: str
    node: int
    epoch: int
    step: int
    spares: int
    ranks: "tuple[node_socket.RankReport, ...]"

    @property
    def can_hand_over(self) -> bool:
        """Whether there are enough warm processes elsewhere for the ranks of this node, as far as is known by now."""
        held = sum(rank.rank >= 0 for rank in self.ranks)
        return 0 < held <= self.spares


def independent(reports: Iterable[JobReport]) -> int:
    """How many of these are jobs of different users: two jobs of one user may say the same for one reason."""
    return len({report.uid for report in reports})


def handed_over(job: JobReport, answer: node_socket.Answer) -> Happening:
    """What there is to tell of a hand-over that is done."""
    return Happening(
        kind=kinds.HANDED_OVER,
        job=job.job,
        duration_s=answer.seconds,
        detail={"rank": ",".join(map(str, answer.ranks)), "step": answer.step, "steps_lost": answer.steps_lost},
    )
