"""What a launcher said, after the kernel was asked whether it may say so."""

from collections.abc import Iterable
from dataclasses import dataclass

from holdfast_agent.signals import Happening
from holdfast_common import kinds, node_socket


@dataclass(frozen=True)
class JobReport(node_socket.LauncherReport):
    """
    One launcher of this node: what it said, of its living processes only, whose pids are those of the agent's node.

    Args:
        connection: Tells launchers of this agent apart, also those of one job.
        uid: Whose job it is, by the kernel.
        pid: Of the launcher, as the agent's node has it.
        heard_s: When it said this, by the clock of the socket.
    """

    connection: int
    uid: int
    pid: int
    heard_s: float

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
