"""Findings in the order in which people look."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Literal

from holdfast.cli.diagnosis import pending
from holdfast.cli.diagnosis.evidence import Evidence, Rank
from holdfast.cli.diagnosis.spans import shown_span
from holdfast.cli.diagnosis.stacks import place, shown_frames
from holdfast.cli.diagnosis.suspects import LEAST_S, SLOW_PHASE_S, Suspect, Waiting, judged

Verdict = Literal["at-fault", "waits", "runs", "ended", "unknown"]
"""
at-fault: a cause is named. waits: it waits for something that ends by itself. runs: nothing stands still. ended: the
job has ended. unknown: it stands still, and the evidence names no cause.
"""
SHOWN_FRAMES = 6
ENDED = ("COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "NODE_FAIL", "OUT_OF_MEMORY", "PREEMPTED", "BOOT_FAIL",
         "DEADLINE", "Complete", "Failed")  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class WaitingRank:
    rank: int
    node: str
    pid: int
    phase: str
    since_s: float | None
    place: str = ""
    """In the program; empty without a stack."""


@dataclass(frozen=True, kw_only=True)
class StackOf:
    rank: int
    node: str
    frames: Sequence[str]
    missing: str = ""
    """Reason if there is no stack."""


@dataclass(frozen=True, kw_only=True)
class Diagnosis:
    """Fields of ``holdfast why --json``, in the order in which people look."""

    job: str
    state: str
    verdict: Verdict
    summary: str
    culprits: Sequence[Suspect]
    """Causes; empty if none is at fault."""
    changed: Sequence[str]
    errors: Sequence[str]
    step_time: str
    step: int | None
    stands_since: str
    """Time of the last finished step in UTC, where the job stands still since; else empty."""
    last_step: str
    waited_for: Sequence[Suspect]
    """Ranks that others wait for, at fault or not."""
    waiting: Sequence[WaitingRank]
    stacks: Sequence[StackOf]
    numbers: Sequence[str]
    reason: Sequence[str]
    """Reasons why it is pending, and why nodes take no job."""
    next: Sequence[str]
    output: Sequence[str]
    unseen: Sequence[str] = field(default_factory=tuple)


def diagnose(evidence: Evidence, *, now_s: float) -> Diagnosis:
    """Return the findings; ``now_s``: seconds since 1970."""
    found = Waiting() if evidence.starting else judged(evidence)
    suspects = [*_nodes(evidence), *pending.causes(evidence), *found.suspects, *_missing(evidence)]
    culprits = [one for one in suspects if one.at_fault]
    errors = [_error(one.text, one.rank, one.node) for one in evidence.failures]
    if not culprits and evidence.failures and not found.suspects and _stands(evidence):
        first = evidence.failures[0]
        rank = int(first.rank) if first.rank.isdecimal() else None
        culprits = [Suspect(kind="error", text=errors[0], rank=rank, node=first.node)]
    verdict = _verdict(evidence, culprits, found, suspects)
    stands = verdict not in ("ended", "runs") and evidence.pace.step is not None and not evidence.pending
    return Diagnosis(
        job=evidence.job,
        state=evidence.state,
        verdict=verdict,
        summary=_summary(evidence, verdict, culprits, suspects, found),
        culprits=culprits,
        changed=[f"{_clock(one.at_s)} {one.text}" for one in sorted(evidence.changes, key=lambda one: one.at_s)],
        errors=[*errors, *(line for one in evidence.failures[:1] for line in one.lines)],
        step_time=evidence.pace.shape,
        step=evidence.pace.step,
        stands_since=_stamp(now_s - (evidence.pace.age_s or 0.0)) if stands else "",
        last_step=_last_step(evidence),
        waited_for=suspects,
        waiting=[_waiting(one, evidence) for one in found.waiting],
        stacks=_stacks(evidence, suspects),
        numbers=_numbers(evidence, suspects),
        reason=pending.lines(evidence),
        next=_next(evidence, culprits, found),
        output=list(evidence.output.lines[-3:]),
        unseen=list(evidence.unseen),
    )


def _verdict(evidence: Evidence, culprits: Sequence[Suspect], found: Waiting, suspects: Sequence[Suspect]) -> Verdict:
    if evidence.state in ENDED:
        return "ended"
    if culprits:
        return "at-fault"
    if evidence.pending or evidence.starting or evidence.recovering or evidence.state == "SUSPENDED":
        return "waits"
    if not _stands(evidence):
        return "runs"
    return "waits" if suspects or (evidence.ranks and not found.waiting) else "unknown"


def _stands(evidence: Evidence) -> bool:
    """Return True if the last step, or without steps the last line of output, is older than is usual."""
    pace = evidence.pace
    age = pace.age_s if pace.age_s is not None else evidence.output.age_s
    return age is not None and age > max(LEAST_S, 10 * (pace.usual_s or 0.0), 1.5 * (pace.longest_s or 0.0))


def _summary(
    evidence: Evidence,
    verdict: Verdict,
    culprits: Sequence[Suspect],
    suspects: Sequence[Suspect],
    found: Waiting,
) -> str:
    if verdict == "ended":
        return f"job {evidence.job} has ended: {evidence.state}"
    if culprits:
        more = f"; {len(culprits) - 1} more" if len(culprits) > 1 else ""
        return f"{culprits[0].text}{more}"
    if evidence.starting:
        return f"the job has not begun: its launchers wait for {evidence.starting}"
    if evidence.recovering:
        return f"the job recovers: {evidence.recovering}"
    if verdict == "runs":
        first = found.note if evidence.pace.is_first else ""
        return first or (
            "no fault found: the job makes progress" if evidence.pace.step is not None else "no fault found"
        )
    if suspects:
        return f"{suspects[0].text}; no fault found"
    if evidence.pending:
        return evidence.pending[0].words
    if found.note:
        return found.note
    return "no progress, and the evidence names no cause"


def _nodes(evidence: Evidence) -> list[Suspect]:
    return [
        Suspect(kind="silent-node", node=node, text=f"node {node} does not answer: {why}")
        for node, why in evidence.silent_nodes.items()
    ] + [
        Suspect(
            kind="launcher-stopped",
            node=node,
            pid=pid,
            text=f"the launcher on {node} (pid {pid}) is stopped by a signal (SIGSTOP); continue it: kill -CONT",
        )
        for node, pid in evidence.stopped_launchers
    ]


def _missing(evidence: Evidence) -> list[Suspect]:
    """Ranks without a process, where all nodes answered and no recovery is under way."""
    seen = {one.rank for one in evidence.ranks}
    if not seen or not evidence.world_size or evidence.recovering or evidence.silent_nodes or evidence.unseen:
        return []
    gone = sorted(set(range(evidence.world_size)) - seen)
    return [Suspect(kind="gone", rank=rank, text=f"rank {rank} has no process on any node") for rank in gone]


def _last_step(evidence: Evidence) -> str:
    pace = evidence.pace
    if pace.age_s is None:
        return ""
    if pace.by_output:
        every = f"; before, a line every {shown_span(pace.usual_s)}" if pace.usual_s is not None else ""
        return f"no steps reported; last output {shown_span(pace.age_s)} ago{every}"
    if pace.is_first:
        return f"no step finished in this attempt; it began {shown_span(pace.age_s)} ago"
    usual = f"; usual {shown_span(pace.usual_s)}" if pace.usual_s is not None else ""
    longest = f", longest {shown_span(pace.longest_s)}" if pace.longest_s is not None else ""
    step = f"step {pace.step} finished" if pace.step is not None else "last step"
    return f"{step} {shown_span(pace.age_s)} ago{usual}{longest}"


def _waiting(rank: Rank, evidence: Evidence) -> WaitingRank:
    since = rank.silent_s if rank.silent_s is not None else evidence.pace.age_s
    return WaitingRank(
        rank=rank.rank, node=rank.node, pid=rank.process.pid, phase=rank.phase, since_s=since, place=place(rank.stack)
    )


def _stacks(evidence: Evidence, suspects: Sequence[Suspect]) -> list[StackOf]:
    odd = {one.rank for one in suspects if one.rank is not None}
    return [
        StackOf(
            rank=rank.rank,
            node=rank.node,
            frames=[frame.text for frame in shown_frames(rank.stack)][:SHOWN_FRAMES],
            missing="" if rank.stack else rank.no_stack or "no stack",
        )
        for rank in evidence.ranks
        if rank.rank in odd
    ]


def _numbers(evidence: Evidence, suspects: Sequence[Suspect]) -> list[str]:
    odd = dict.fromkeys(one.node for one in suspects if one.node)
    return [line for node in odd for line in evidence.numbers.get(node, ())]


def _next(evidence: Evidence, culprits: Sequence[Suspect], found: Waiting) -> list[str]:
    lines = pending.next_lines(evidence.pending)
    lines += [f"recovery under way: {evidence.recovering}"] if evidence.recovering else []
    if evidence.starting:
        lines.append("the launchers end the job at their deadline: holdfast-run --deadlines start=SECONDS")
    lines += [*evidence.remedies]
    lines += _launcher_acts(evidence, found)
    if culprits and not lines and evidence.ranks:
        lines.append("nothing acts by itself: no launcher of holdfast-run watches this job; holdfast cancel ends it")
    if evidence.ends_s is not None:
        lines.append(f"Slurm ends the job at its time limit in {shown_span(max(0.0, evidence.ends_s))}")
    return lines


def _launcher_acts(evidence: Evidence, found: Waiting) -> list[str]:
    if not evidence.deadlines or not found.suspects or not (_stands(evidence) or found.suspects[0].at_fault):
        return []
    first = found.suspects[0]
    since = first.since_s or 0.0
    progress = evidence.deadlines.get("progress", SLOW_PHASE_S)
    silence = evidence.deadlines.get("silence", progress)
    if first.kind == "stopped":
        return [f"the launcher kills it after {evidence.deadlines.get('frozen', 0):g} s of standing stopped"]
    waited = [one.silent_s for one in found.waiting if one.phase == "vote" and one.silent_s is not None]
    left = min([progress - since, *(silence - each for each in waited)])
    if left <= 0:
        return ["the launcher is about to request a new generation: its deadline has passed"]
    return [f"in {shown_span(left)} the launcher requests a new generation and kills ranks that do not leave"]


def _error(text: str, rank: str, node: str) -> str:
    where = " on ".join(filter(None, (f"rank {rank}" if rank else "", node)))
    return f"{where}: {text}" if where else text


def _clock(at_s: float) -> str:
    return datetime.fromtimestamp(at_s, tz=UTC).strftime("%H:%M:%S")


def _stamp(at_s: float) -> str:
    return datetime.fromtimestamp(at_s, tz=UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
