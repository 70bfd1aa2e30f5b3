"""Pending waits of a launcher and replacement of lost nodes, for ``holdfast-run status``. Pure."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from holdfast_runtime.launcher.allocation import WITHOUT
from holdfast_runtime.launcher.generation import ranges
from holdfast_runtime.patience import ProgressReport


@dataclass(frozen=True, kw_only=True)
class Situation:
    generation: int
    missing: Sequence[int]
    """Nodes of the job whose launcher is not in reach."""
    requested: str
    """Reason for the next generation; empty if none is requested."""
    staying: Sequence[int]
    """Local ranks that have not left the last generation."""
    starting: int
    """Local processes that are not ready."""
    unanswered: Sequence[int]
    """Nodes whose answer to a proposal of this launcher is still to come."""
    reports: Sequence[ProgressReport]
    """Last progress reports of the local ranks."""
    world_size: int


def waits_for(now: Situation) -> str:
    """Return who is waited for; empty where nobody is. A rank that waits itself is never named as the one."""
    if not now.generation:
        if now.missing:
            return f"launchers of nodes {ranges(now.missing)}"
        return f"{now.starting} processes of this node to be ready" if now.starting else "processes of other nodes"
    if now.requested:
        if now.staying:
            return f"ranks {ranges(sorted(now.staying))} of this node to leave generation {now.generation}"
        if now.unanswered:
            return f"answers of nodes {ranges(now.unanswered)}"
        return "ranks of other nodes to leave, or processes to be ready"
    return _of_the_step(now)


def _of_the_step(now: Situation) -> str:
    reports = now.reports
    if not reports:
        return ""
    furthest = max(report.position for report in reports)
    behind = [report for report in reports if report.position < furthest]
    waiting = [report for report in reports if report not in behind]
    if behind:
        last = min(behind, key=lambda report: report.position)
        where = f"in phase {last.phase} of step {last.step} for {last.silent_s:.1f} s"
        waits = f"; ranks {_ranks(waiting)} wait for it"
        return f"rank {last.rank}, {where}{waits}"
    if reports[0].phase == "vote" and len(reports) < now.world_size:
        return f"ranks of other nodes; ranks {_ranks(reports)} of this one have voted on step {reports[0].step}"
    return ""


def _ranks(reports: Iterable[ProgressReport]) -> str:
    return ranges(sorted(report.rank for report in reports))


def spare_of(*, lost: Sequence[int], spares: int, answer: str) -> str:
    """Return how nodes that are lost come back; empty where none is, or a spare is there."""
    if not lost or spares:
        return ""
    return {"none": WITHOUT, "expand": f"waits for Slurm to give a node in place of {ranges(lost)}"}.get(answer, "")
