"""
Where the time of a job went, to the nanosecond: every stretch between two events is put on one account.

A stretch is judged by the event that ends it, and by whether steps that still count at the end were done in it:

==============================================  ===========================================================
a report of more steps                          useful; redo, in proportion, for steps that were done again
a checkpoint                                    checkpoint, for as long as the event says that it took
a fault that was injected, after the last step  redo: steps that no report tells of, or useful if they are kept
``verdict``, where no step was done after it    detect
``handed_over``, before the job is resumed      useful; rebuild, for as long as it says that the job stood still
``node_lost``, ``node_failed``                  detect
``recovery_agreed`` .. ``recovery_copied``      agree, abort, rebuild, copy: written by a runtime that recovers in place
``node_replaced``, ``node_rebooted``            replace
``job_submitted``                               idle: nobody had asked for the job
``job_started``, ``job_resumed``                rebuild: processes start, groups form, state is loaded
anything else, and the end of the log           idle
==============================================  ===========================================================

The rows of a job are what its log says, those of nodes and agents what the cluster's own components say.

The accounts are whole nanoseconds between the first start of the job and its end, so they add up to the wall clock.
"""

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from holdfast_common import Event, kinds

ACCOUNTS = (
    "useful", "checkpoint", "detect", "agree", "abort", "rebuild", "copy", "redo", "replace", "idle",
)  # fmt: skip

_STARTS = (kinds.JOB_STARTED, kinds.JOB_RESUMED)
_MARKS = (kinds.JOB_PROGRESS, kinds.CHECKPOINT_SAVED, kinds.JOB_FINISHED)
_IN_PLACE = {f"recovery_{done}": account for done, account in (
    ("detected", "detect"), ("agreed", "agree"), ("aborted", "abort"), ("rebuilt", "rebuild"), ("copied", "copy"),
)}  # fmt: skip
_BETWEEN_ATTEMPTS = {
    kinds.FAULT_INJECTED: "redo",
    kinds.VERDICT: "detect",
    kinds.NODE_LOST: "detect",
    kinds.NODE_FAILED: "detect",
    kinds.NODE_REPLACED: "replace",
    kinds.NODE_REBOOTED: "replace",
    kinds.JOB_SUBMITTED: "idle",
}


@dataclass(frozen=True, kw_only=True)
class Stretch:
    """Time on one account."""

    account: str
    start_ns: int
    end_ns: int


@dataclass(frozen=True, kw_only=True)
class Ledger:
    """One job's wall clock, from its first start to its finish or to the latest event there is."""

    job: str
    start_ns: int
    end_ns: int
    stretches: tuple[Stretch, ...]
    """One after the other, without a gap."""

    @property
    def wall_ns(self) -> int:
        return self.end_ns - self.start_ns

    @property
    def totals_ns(self) -> dict[str, int]:
        """Nanoseconds by account; they add up to ``wall_ns``."""
        totals = dict.fromkeys(ACCOUNTS, 0)
        for stretch in self.stretches:
            totals[stretch.account] += stretch.end_ns - stretch.start_ns
        return totals

    @property
    def goodput(self) -> float | None:
        """Useful share; None when no time has passed."""
        return self.totals_ns["useful"] / self.wall_ns if self.wall_ns > 0 else None


def ledgers(events: Iterable[Event]) -> tuple[Ledger, ...]:
    """A ledger for each job that has started, from events in any order and with repeats."""
    unique = {event.to_json(): event for event in events}
    ordered = sorted(unique.values(), key=lambda event: (event.time_ns, _rank(event)))
    jobs = dict.fromkeys(event.job for event in ordered if event.source == "job" and event.kind in _STARTS + _MARKS)
    return tuple(_ledger(job, ordered) for job in jobs)


def _rank(event: Event) -> int:
    return 0 if event.kind in _STARTS else 2 if event.kind == kinds.JOB_FINISHED else 1


def _ledger(job: str, ordered: Sequence[Event]) -> Ledger:
    running = [event for event in ordered if event.job == job and event.source == "job" and _is_of_job(event)]
    finished = running[-1].kind == kinds.JOB_FINISHED
    start_ns, end_ns = running[0].time_ns, running[-1].time_ns if finished else ordered[-1].time_ns
    boundaries = [event for event in ordered if start_ns <= event.time_ns <= end_ns and _counts(event, job, running)]
    kept_until = _kept_until(running)
    stretches: list[Stretch] = []
    step, resumed_from = _step(running[0], 0.0), 0
    for before, after in itertools.pairwise(boundaries):
        if after.kind in _STARTS and after.source == "job":
            resumed_from += 1
        kept = kept_until[resumed_from]
        stretches += _stretches(before.time_ns, after, step=step, kept_until=kept)
        step = _step(after, 0.0) if after.kind in _STARTS else max(step, _step(after, step))
    if boundaries[-1].time_ns < end_ns:
        stretches.append(Stretch(account="idle", start_ns=boundaries[-1].time_ns, end_ns=end_ns))
    return Ledger(job=job, start_ns=start_ns, end_ns=end_ns, stretches=_merged(stretches))


def _is_of_job(event: Event) -> bool:
    return event.kind in _STARTS + _MARKS or event.kind in _IN_PLACE


def _counts(event: Event, job: str, running: Sequence[Event]) -> bool:
    """Whether an event ends a stretch of the job: its own events, and those of its nodes while it does not run."""
    if event.job == job and event.source == "job":
        return _is_of_job(event)
    if event.source == "job":
        return False
    if event.kind == kinds.HANDED_OVER:
        return event.job == job and not _is_told(event, running)
    if event.kind not in _BETWEEN_ATTEMPTS:
        return False
    before = [own for own in running if own.time_ns <= event.time_ns]
    after = next((own for own in running if own.time_ns > event.time_ns), None)
    if after is not None and after.kind not in _STARTS:
        return False
    if event.kind == kinds.JOB_SUBMITTED:
        return event.job == job
    if event.kind == kinds.VERDICT and (after is None or _step(after, 0.0) > max(_step(own, 0.0) for own in before)):
        return False
    started = next(own for own in reversed(before) if own.kind in _STARTS or own is before[0])
    nodes = {name for name in str(started.detail.get("nodes", "")).split(",") if name}
    return not nodes or bool(nodes & {event.node, str(event.detail.get("replaces", ""))})


def _is_told(handed_over: Event, running: Sequence[Event]) -> bool:
    """Whether the job has gone on from that step already: an agent hears of it later than the launcher that speaks."""
    step = _step(handed_over, -1.0)
    return any(
        own.kind in _STARTS and own.time_ns <= handed_over.time_ns and _step(own, 0.0) == step for own in running
    )


def _kept_until(running: Sequence[Event]) -> list[float]:
    """For each attempt the step up to which its work counts: no later attempt began before it."""
    first_steps = [_step(event, 0.0) for event in running if event.kind in _STARTS]
    if running[0].kind not in _STARTS:
        first_steps.insert(0, _step(running[0], 0.0))
    return [min(first_steps[index + 1 :], default=float("inf")) for index in range(len(first_steps))]


def _step(event: Event, default: float) -> float:
    value = event.detail.get("step")
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else default


def _stretches(start_ns: int, after: Event, *, step: float, kept_until: float) -> list[Stretch]:
    end_ns = after.time_ns
    if after.kind in _STARTS:
        return [Stretch(account="rebuild", start_ns=start_ns, end_ns=end_ns)]
    if after.kind == kinds.HANDED_OVER:
        stood_ns = min(end_ns - start_ns, round(max(0.0, after.duration_s or 0.0) * 1e9))
        return [
            Stretch(account="useful", start_ns=start_ns, end_ns=end_ns - stood_ns),
            Stretch(account="rebuild", start_ns=end_ns - stood_ns, end_ns=end_ns),
        ]
    if after.kind == kinds.FAULT_INJECTED and kept_until > step:
        return [Stretch(account="useful", start_ns=start_ns, end_ns=end_ns)]
    if after.kind not in _MARKS:
        account = _IN_PLACE.get(after.kind) or _BETWEEN_ATTEMPTS[after.kind]
        return [Stretch(account=account, start_ns=start_ns, end_ns=end_ns)]
    done = _step(after, step) - step
    written_ns = start_ns if done <= 0 else end_ns
    if after.kind == kinds.CHECKPOINT_SAVED and done > 0 and after.duration_s is not None:
        written_ns = max(start_ns, end_ns - round(max(0.0, after.duration_s) * 1e9))
    kept = min(max(0.0, min(step + done, kept_until) - step), done) if done > 0 else 0.0
    middle_ns = start_ns + (round((written_ns - start_ns) * kept / done) if done > 0 else 0)
    rest = "checkpoint" if after.kind == kinds.CHECKPOINT_SAVED else "idle"
    return [
        Stretch(account="useful", start_ns=start_ns, end_ns=middle_ns),
        Stretch(account="redo", start_ns=middle_ns, end_ns=written_ns),
        Stretch(account=rest, start_ns=written_ns, end_ns=end_ns),
    ]


def _merged(stretches: Iterable[Stretch]) -> tuple[Stretch, ...]:
    """Without empty stretches, and with neighbours of one account joined."""
    merged: list[Stretch] = []
    for stretch in stretches:
        if stretch.end_ns == stretch.start_ns:
            continue
        if merged and merged[-1].account == stretch.account:
            merged[-1] = Stretch(account=stretch.account, start_ns=merged[-1].start_ns, end_ns=stretch.end_ns)
        else:
            merged.append(stretch)
    return tuple(merged)
