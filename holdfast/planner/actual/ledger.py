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

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from holdfast.planner.actual.running import MARKS, STARTS, JobEvents, OtherEvent
from holdfast_common import Event, in_order, kinds

ACCOUNTS = (
    "useful", "checkpoint", "detect", "agree", "abort", "rebuild", "copy", "redo", "replace", "idle",
)  # fmt: skip

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


_Span = tuple[str, int, int]
"""Account, start and end."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Stretch:
    account: str
    start_ns: int
    end_ns: int


@dataclass(frozen=True, kw_only=True)
class Ledger:
    """Wall clock of one job, from its first start to its finish or the latest event."""

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
        """Nanoseconds by account; they sum to ``wall_ns``."""
        totals = dict.fromkeys(ACCOUNTS, 0)
        for stretch in self.stretches:
            totals[stretch.account] += stretch.end_ns - stretch.start_ns
        return totals

    @property
    def goodput(self) -> float | None:
        """Useful share; None for a run of no length."""
        return self.totals_ns["useful"] / self.wall_ns if self.wall_ns > 0 else None


def ledgers(events: Iterable[Event]) -> tuple[Ledger, ...]:
    """Ledger of each started job, from events in any order, repeats included."""
    books = Books()
    for event in in_order(events):
        books.add(event)
    return books.ledgers()


class Books:
    def __init__(self) -> None:
        self._jobs: dict[str, JobEvents] = {}
        self._started: dict[str, JobEvents] = {}
        self._others: list[OtherEvent] = []
        self._latest_ns = 0

    def add(self, event: Event) -> None:
        self._latest_ns, kind = event.time_ns, event.kind
        if event.source == "job" and (kind in MARKS or kind in STARTS or kind in _IN_PLACE):
            job = self._jobs.get(event.job)
            if job is None:
                job = self._jobs[event.job] = JobEvents()
            job.add(event)
            if kind not in _IN_PLACE:
                self._started.setdefault(event.job, job)
        elif event.source != "job" and (kind in _BETWEEN_ATTEMPTS or kind == kinds.HANDED_OVER):
            self._others.append(OtherEvent.of(event))

    def ledgers(self) -> tuple[Ledger, ...]:
        return tuple(self._ledger(name, running) for name, running in self._started.items())

    def _ledger(self, job: str, running: JobEvents) -> Ledger:
        start_ns, end_ns = running.times_ns[0], running.times_ns[-1]
        if running.kind(len(running) - 1) != kinds.JOB_FINISHED:
            end_ns = self._latest_ns
        between = [other for other in OtherEvent.within(self._others, start_ns, end_ns) if _counts(other, job, running)]
        spans = _spans(running, between, end_ns=end_ns)
        return Ledger(job=job, start_ns=start_ns, end_ns=end_ns, stretches=_merged(spans))


def _counts(other: OtherEvent, job: str, running: JobEvents) -> bool:
    if other.kind == kinds.HANDED_OVER:
        # An agent hears of it later than the launcher that speaks: the job may have gone on from that step already.
        return other.job == job and not running.has_started_at(
            -1.0 if other.step is None else other.step, other.time_ns
        )
    before = running.until(other.time_ns)
    ends_attempt = before == len(running) or running.kind(before) in STARTS
    if not ends_attempt:
        return False
    if other.kind == kinds.JOB_SUBMITTED:
        return other.job == job
    if other.kind == kinds.VERDICT and (before == len(running) or running.step(before) > running.most_before(before)):
        return False
    nodes = running.nodes_at(before)
    return not nodes or other.node in nodes or other.replaces in nodes


def _spans(running: JobEvents, between: "list[OtherEvent]", *, end_ns: int) -> Iterator[_Span]:
    kept_until = running.kept_until()
    before_ns, step, resumed_from = running.times_ns[0], running.step(0), 0
    others = iter([*between, None])
    other = next(others)
    for at in range(1, len(running) + 1):
        is_over = at == len(running)
        time_ns = end_ns if is_over else running.times_ns[at]
        kind = "" if is_over else running.kind(at)
        while other is not None and (is_over or other.time_ns < time_ns or _is_last(other, time_ns, kind)):
            yield from _of_other(before_ns, other, step=step, kept_until=kept_until[resumed_from])
            before_ns, step = other.time_ns, step if other.step is None else max(step, other.step)
            other = next(others)
        if is_over:
            yield "idle", before_ns, end_ns
        elif kind in STARTS:
            resumed_from += 1
            yield "rebuild", before_ns, time_ns
            step = running.step(at)
        elif kind in _IN_PLACE:
            yield _IN_PLACE[kind], before_ns, time_ns
            step = max(step, running.step(at))
        else:
            reached = running.step(at, step)
            written_s = running.duration_s(at) if kind == kinds.CHECKPOINT_SAVED else None
            rest = "checkpoint" if kind == kinds.CHECKPOINT_SAVED else "idle"
            yield from _of_steps(
                (before_ns, time_ns),
                (step, reached),
                kept_until=kept_until[resumed_from],
                written_s=written_s,
                rest=rest,
            )
            step = max(step, reached)
        before_ns = time_ns


def _is_last(other: OtherEvent, time_ns: int, kind: str) -> bool:
    return other.time_ns == time_ns and kind == kinds.JOB_FINISHED


def _of_other(start_ns: int, other: OtherEvent, *, step: float, kept_until: float) -> Iterator[_Span]:
    end_ns = other.time_ns
    if other.kind == kinds.HANDED_OVER:
        stood_ns = _nanoseconds(other.duration_s, most=end_ns - start_ns)
        yield "useful", start_ns, end_ns - stood_ns
        yield "rebuild", end_ns - stood_ns, end_ns
    elif other.kind == kinds.FAULT_INJECTED and kept_until > step:
        yield "useful", start_ns, end_ns
    else:
        yield _BETWEEN_ATTEMPTS[other.kind], start_ns, end_ns


def _of_steps(
    times_ns: tuple[int, int], steps: tuple[float, float], *, kept_until: float, written_s: float | None, rest: str
) -> Iterator[_Span]:
    (start_ns, end_ns), (step, reached) = times_ns, steps
    done = reached - step
    if done <= 0:
        yield rest, start_ns, end_ns
        return
    written_ns = end_ns - _nanoseconds(written_s, most=end_ns - start_ns)
    kept = min(max(0.0, min(reached, kept_until) - step), done)
    middle_ns = start_ns + round((written_ns - start_ns) * kept / done)
    yield "useful", start_ns, middle_ns
    yield "redo", middle_ns, written_ns
    yield rest, written_ns, end_ns


def _nanoseconds(seconds: float | None, *, most: int) -> int:
    return 0 if seconds is None else round(min(max(0.0, seconds) * 1e9, most))


def _merged(spans: Iterable[_Span]) -> tuple[Stretch, ...]:
    merged: list[Stretch] = []
    account, start_ns, end_ns = "", 0, 0
    for name, begun_ns, ended_ns in spans:
        if begun_ns == ended_ns:
            continue
        if name != account:
            if account:
                merged.append(Stretch(account=account, start_ns=start_ns, end_ns=end_ns))
            account, start_ns = name, begun_ns
        end_ns = ended_ns
    if account:
        merged.append(Stretch(account=account, start_ns=start_ns, end_ns=end_ns))
    return tuple(merged)
