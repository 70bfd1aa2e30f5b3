from collections.abc import Iterable
from dataclasses import dataclass

from holdfast_agent.signals import Happening
from holdfast_common import kinds, node_socket


@dataclass(frozen=True)
class JobReport(node_socket.LauncherReport):
    """
    One launcher of this node; pids are those of the agent's node, of living processes only.

    Args:
        connection: Distinguishes launchers, also of one job.
        uid: User of the job, by the kernel.
        pid: Of the launcher, in the agent's namespace.
        received_s: Time of the report, by the clock of the socket.
    """

    connection: int
    uid: int
    pid: int
    received_s: float

    @property
    def can_hand_over(self) -> bool:
        """True if other nodes have enough warm processes for the ranks of this node, as far as known."""
        held = sum(rank.rank >= 0 for rank in self.ranks)
        return 0 < held <= self.spares


def independent(reports: Iterable[JobReport]) -> int:
    """Number of different users of these jobs: two jobs of one user may share a cause."""
    return len({report.uid for report in reports})


def handed_over(job: JobReport, answer: node_socket.Answer) -> Happening:
    return Happening(
        kind=kinds.HANDED_OVER,
        job=job.job,
        duration_s=answer.seconds,
        detail={"rank": ",".join(map(str, answer.ranks)), "step": answer.step, "steps_lost": answer.steps_lost},
    )
