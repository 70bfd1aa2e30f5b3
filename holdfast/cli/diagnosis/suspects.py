"""
Ranks that wait, and ranks that are waited for.

A rank is at fault at once if a signal stopped it, the kernel holds it, or it is gone. A rank that works alone while
others wait is at fault only beyond the usual time of its activity: an evaluation, a checkpoint, a compilation and the
first step have the time that the launcher gives them.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from holdfast.cli.diagnosis.evidence import Evidence, Pace, Process, Rank
from holdfast.cli.diagnosis.stacks import Doing, doing, doing_by_output, place

Kind = Literal[
    "stopped", "held", "gone", "silent-node", "disk-full", "loop", "loop-in-c", "loader", "sleeps", "never-entered",
    "slow", "drained", "capacity", "image", "scheduling", "error", "launcher-stopped",
]  # fmt: skip
LEAST_S = 15.0
"""A rank that works alone for less is not slow, whatever the pace."""
WITHOUT_PACE_S = 30.0
MULTIPLE = 10
"""Of the usual step, as the launcher's own limit (holdfast_runtime.patience.pace)."""
OF_LONGEST = 1.5
SLOW_PHASE_S = 600.0
"""Default of the launcher's deadline ``progress``."""
HELD_S = 5.0
"""A process that a file system holds for less is one that writes."""
SLOW_PHASES: "tuple[Doing, ...]" = ("checkpoint", "evaluation", "compile")
_UNSHOWN = "all ranks wait, and no stack shows for what: install py-spy in the job's Python, and ask again"
_SLEEPS = ("nanosleep", "hrtimer")
_READS = ("poll", "select", "pipe", "unix_stream")
"""Parts of the names of kernel functions in which a process waits for a pipe or a socket; a lock is a futex."""


@dataclass(frozen=True, kw_only=True)
class Suspect:
    """
    Cause, or rank that is waited for.

    Args:
        at_fault: False for one that works within its usual time.
        since_s: None if unknown.
    """

    kind: Kind
    text: str
    at_fault: bool = True
    rank: int | None = None
    node: str = ""
    pid: int | None = None
    phase: str = ""
    since_s: float | None = None


@dataclass(frozen=True, kw_only=True)
class Waiting:
    """Waiting ranks and those that they wait for."""

    suspects: Sequence[Suspect] = ()
    waiting: Sequence[Rank] = ()
    note: str = ""


def judged(evidence: Evidence) -> Waiting:
    ranks = sorted(evidence.ranks, key=lambda one: one.rank)
    if not ranks:
        return Waiting()
    if all(one.process.is_stopped for one in ranks):
        return _all_stopped(ranks, evidence)
    hinted = doing_by_output(evidence.output.lines)
    broken = [found for rank in ranks if (found := _broken(rank, evidence, hinted=hinted)) is not None]
    named = {one.rank for one in broken}
    waiting = [rank for rank in ranks if rank.rank not in named and waits(rank)]
    if broken:
        return Waiting(suspects=broken, waiting=waiting)
    if not waiting:
        return Waiting(note=_all_work(ranks, evidence.pace))
    active = [rank for rank in ranks if rank not in waiting]
    if active:
        return Waiting(suspects=[_active(rank, evidence, hinted=hinted) for rank in active], waiting=waiting)
    return _all_wait(ranks, evidence)


def waits(rank: Rank) -> bool:
    """Return True if the rank waits for others in a collective or in the vote."""
    if rank.process.is_stopped or _stuck_worker(rank) is not None:
        return False
    what = doing(rank.stack)
    if rank.stack:
        return what == "collective" or (rank.phase == "vote" and what == "")
    if rank.phase:
        return rank.phase == "vote"
    if rank.process.works or any(one.works for one in rank.workers):
        return False
    return not _sleeps(rank.process) and not rank.process.is_held and not _waits_for_workers(rank)


def limit_s(what: Doing, pace: Pace, *, moves: bool, longest_allowed_s: float = SLOW_PHASE_S) -> float:
    """Seconds that a rank may work while the others wait."""
    unknown = pace.usual_s is None and pace.longest_s is None
    least = WITHOUT_PACE_S if unknown or pace.by_output else LEAST_S
    usual = max(least, MULTIPLE * (pace.longest_s or 0.0 if pace.usual_s is None else pace.usual_s))
    usual = max(usual, OF_LONGEST * (pace.longest_s or 0.0))
    if what in SLOW_PHASES or pace.is_first or (moves and what in ("loader", "")):
        return max(usual, longest_allowed_s)
    return usual


def _broken(rank: Rank, evidence: Evidence, *, hinted: Doing) -> Suspect | None:
    process, since = rank.process, _since(rank, evidence.pace)
    if process.is_gone:
        return _suspect(rank, "gone", f"{rank.name} has ended, and nothing has replaced it", since)
    if process.is_stopped:
        return _suspect(
            rank, "stopped", f"{rank.name} is stopped by a signal (SIGSTOP); continue it: kill -CONT", since
        )
    if process.is_held and _held_too_long(rank, since, hinted=hinted):
        where = f" in {process.waits_in}" if process.waits_in not in ("", "0") else ""
        what = "writing a checkpoint" if (doing(rank.stack) or hinted) == "checkpoint" else ""
        full = _full(evidence, rank)
        text = f"{rank.name} is held by the kernel{where} (state D){', ' if what else ''}{what}{full}"
        return _suspect(rank, "disk-full" if full else "held", text, since)
    if worker := _stuck_worker(rank):
        how = "stopped by a signal" if worker.is_stopped else f"held by the kernel in {worker.waits_in or '?'}"
        text = f"{rank.name} waits for its data loader: worker pid {worker.pid} is {how}"
        return _suspect(rank, "loader", text, since)
    if (full := _full(evidence, rank)) and (doing(rank.stack) or hinted) == "checkpoint" and not process.moved_bytes:
        return _suspect(rank, "disk-full", f"{rank.name} writes a checkpoint{full}", since)
    return None


def _held_too_long(rank: Rank, since: float | None, *, hinted: Doing) -> bool:
    slow = (doing(rank.stack) or hinted) in SLOW_PHASES
    return (HELD_S if since is None else since) >= (WITHOUT_PACE_S * 3 if slow else HELD_S)


def _active(rank: Rank, evidence: Evidence, *, hinted: Doing) -> Suspect:
    pace, process = evidence.pace, rank.process
    what = doing(rank.stack) if doing(rank.stack) not in ("program", "") else hinted or doing(rank.stack)
    moves = process.moved_bytes > 0 or any(one.works for one in rank.workers)
    since = _since(rank, pace)
    limit = limit_s(what, pace, moves=moves, longest_allowed_s=evidence.deadlines.get("progress", SLOW_PHASE_S))
    at_fault = since is not None and since > limit
    kind, text = _described(rank, what)
    if not at_fault:
        text += " within its usual time" if since is not None else ""
    return _suspect(rank, kind, text, since, at_fault=at_fault)


def _described(rank: Rank, what: Doing) -> tuple[Kind, str]:
    process, where = rank.process, place(rank.stack)
    at = f" at {where}" if where else ""
    if what in SLOW_PHASES:
        names = {"checkpoint": "writes a checkpoint", "evaluation": "evaluates", "compile": "compiles"}
        return "slow", f"{rank.name} {names[what]}{at}"
    if what == "loader" or _waits_for_workers(rank):
        workers = ", ".join(f"{one.pid} in state {one.states[-1:]}{_in(one)}" for one in rank.workers[:4])
        beside = f"; its workers: {workers}" if workers else ""
        return "loader", f"{rank.name} waits for its data loader{at}{beside}"
    if process.computes:
        if rank.asked and not rank.stack:
            why = "its Python answers no request: native code that does not return"
            return "loop-in-c", f"{rank.name} computes, and {why}"
        return "loop", f"{rank.name} computes{at}"
    return "sleeps", f"{rank.name} does not compute{_in(process)}{at}"


def _all_wait(ranks: Sequence[Rank], evidence: Evidence) -> Waiting:
    """All wait: those that are in another place than most have not entered the collective of the others."""
    groups = Counter(_position(rank) for rank in ranks)
    if len(groups) == 1:
        missing = (evidence.world_size or len(ranks)) - len(ranks)
        shown = any(rank.stack or rank.phase for rank in ranks)
        note = "all ranks wait in the same collective" if shown else _UNSHOWN
        if missing > 0:
            note += f"; {missing} rank{'s' if missing > 1 else ''} of {evidence.world_size} not found on any node"
        elif shown and _is_late(evidence.pace):
            note += ", which does not end: the network between the nodes, or a peer that answers no more"
        return Waiting(waiting=ranks, note=note)
    # Of two groups of one size, the one further on has left out what the other waits in.
    odd = min(groups, key=lambda one: (groups[one], tuple(-each for each in one[:2])))
    common = max(groups, key=lambda one: (groups[one], tuple(-each for each in one[:2])))
    others = next(rank for rank in ranks if _position(rank) == common)
    at_fault = evidence.pace.age_s is None or _is_late(evidence.pace)
    suspects = [
        _suspect(
            rank,
            "never-entered",
            f"{rank.name} has not entered the collective in which the others wait"
            f" ({_where(others)}); it is elsewhere ({_where(rank)})",
            _since(rank, evidence.pace),
            at_fault=at_fault,
        )
        for rank in ranks
        if _position(rank) == odd
    ]
    return Waiting(suspects=suspects, waiting=[rank for rank in ranks if _position(rank) != odd])


def _position(rank: Rank) -> tuple[int, int, str]:
    order = {"other": 1, "forward": 2, "vote": 3}.get(rank.phase, 0)
    return rank.step or 0, order, place(rank.stack) or ("" if rank.phase else rank.process.waits_in)


def _where(rank: Rank) -> str:
    return place(rank.stack) or " ".join(
        filter(None, (rank.phase and f"phase {rank.phase}", _in(rank.process).strip()))
    ) or "unknown"  # fmt: skip


def _is_late(pace: Pace) -> bool:
    return pace.age_s is not None and pace.age_s > limit_s("", pace, moves=False)


def _all_work(ranks: Sequence[Rank], pace: Pace) -> str:
    what = Counter(doing(rank.stack) or "program" for rank in ranks).most_common(1)[0][0]
    names = {"program": "compute", "checkpoint": "write a checkpoint", "evaluation": "evaluate", "compile": "compile",
             "loader": "wait for their data loaders", "collective": "communicate"}  # fmt: skip
    first = "; no step of this attempt is finished yet" if pace.is_first else ""
    return f"no rank waits for another one: all {names[what]}{first}"


def _all_stopped(ranks: Sequence[Rank], evidence: Evidence) -> Waiting:
    if evidence.state == "SUSPENDED":
        return Waiting(note="all ranks are stopped: Slurm has suspended the job; continue it: scontrol resume")
    return Waiting(
        suspects=[
            _suspect(rank, "stopped", f"{rank.name} is stopped by a signal (SIGSTOP)", _since(rank, evidence.pace))
            for rank in ranks
        ]
    )


def _stuck_worker(rank: Rank) -> Process | None:
    return next((one for one in rank.workers if one.is_stopped or one.is_held), None)


def _sleeps(process: Process) -> bool:
    return any(word in process.waits_in for word in _SLEEPS)


def _waits_for_workers(rank: Rank) -> bool:
    return bool(rank.workers) and any(word in rank.process.waits_in for word in _READS)


def _in(process: Process) -> str:
    return f" in {process.waits_in}" if process.waits_in not in ("", "0") else ""


def _full(evidence: Evidence, rank: Rank) -> str:
    found = next((one for one in evidence.full if one.startswith(f"{rank.node}:")), "")
    return f" to a full file system ({found.partition(':')[2]})" if found else ""


def _since(rank: Rank, pace: Pace) -> float | None:
    return rank.silent_s if rank.silent_s is not None else pace.age_s


def _suspect(rank: Rank, kind: Kind, text: str, since: float | None, *, at_fault: bool = True) -> Suspect:
    return Suspect(
        kind=kind, text=text, at_fault=at_fault, rank=rank.rank, node=rank.node, pid=rank.process.pid,
        phase=rank.phase, since_s=since,
    )  # fmt: skip
