"""
``holdfast rehearse``: train, break a node under the job, and watch it come back.

Everything it shows is read from the cluster's events; the summary is their timeline and nothing else.
"""

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from holdfast.cli.deployed import (
    Context,
    job_outcome,
    job_output,
    kubernetes_outcome,
    kubernetes_output,
    read_events,
    read_status,
)
from holdfast.cli.kubernetes import COMPLETE
from holdfast.cli.rehearsal.faults import Fault, inject
from holdfast.cli.rehearsal.planting import plant_fault
from holdfast.cli.submission import check_fits, prepare_data, submit_any
from holdfast.cli.terminal import CommandError, Step, console, step
from holdfast.cli.views import summary

if TYPE_CHECKING:
    from holdfast_common import Event

POLL_S = 0.3
EVENTS_WITHIN_S = 10.0
"""After the end of a job, until its last events are read."""
TOLD_LINES = 12
HEALED = "xid-79"
"""What the agents of a rehearsal are shown."""
JOB_TIMEOUT_S = 600.0
"""Longest wait for any one thing: the first step, the replacement, the end of the job."""


def rehearse_jobs(
    context: Context, *, files: Sequence[Path], prepare: Path | None, fault: Fault = Fault.destroy
) -> "list[Event]":
    """The rehearsals themselves, and one summary of all. Returns their events."""
    for file in files:
        check_fits(file, orchestrator=context.orchestrator)
    if prepare is not None:
        prepare_data(context, program=prepare)
    events: list[Event] = []
    names: dict[str, str] = {}
    for file in files:
        watch = _rehearse(context, file=file, fault=fault)
        events += watch.events
        names[watch.job_id] = file.stem
    console.print(summary(read_status(context), events, names=names))
    return events


def _rehearse(context: Context, *, file: Path, fault: Fault) -> "_Watch":
    from holdfast_common import kinds

    since_ns = time.time_ns()
    job_id = submit_any(context, file=file, user="ubuntu")
    watch = _Watch(context=context, job_id=job_id, since_ns=since_ns)
    with step("train") as progress:
        if not watch.until(lambda events: _has(events, kinds.CHECKPOINT_SAVED), what="a checkpoint", progress=progress):
            raise CommandError(
                f"job {job_id} has ended well without an event of a checkpoint, so no node was broken under it; "
                f"a job for a rehearsal writes such events (docs/events.md) and trains for a while; "
                f"its output: holdfast logs --job {job_id}",
                exit_code=1,
            )
    victim = _last_node_of(watch.events)
    with step(f"{fault.value} a node under the job") as progress:
        instance_id = inject(context, node=victim, fault=fault)
        progress.update(f"{victim} ({instance_id})")
    with step("notice") as progress:
        watch.until(
            lambda events: _has(events, kinds.NODE_LOST),
            what="the lost node to be noticed",
            progress=progress,
            job_may_end=True,
        )
    with step("resume") as progress:
        if not watch.until(lambda events: _has(events, kinds.JOB_RESUMED), what="the job to resume", progress=progress):
            progress.update("the job ended without it")
    with step("replace the node") as progress:
        watch.until(
            lambda events: _has(events, kinds.NODE_REPLACED),
            what="the replacement",
            progress=progress,
            job_may_end=True,
        )
    if _may_heal(context, watch.events):
        _heal(context, watch)
    with step("train to the end") as progress:
        watch.until(lambda events: _has(events, kinds.JOB_FINISHED), what="the job to finish", progress=progress)
    return watch


def _may_heal(context: Context, events: "list[Event]") -> bool:
    """Whether health agents act in this cluster, and launchers of the job hand ranks over."""
    from holdfast_common import kinds

    acting = any(
        event.kind == kinds.AGENT_STARTED and event.detail.get("mode") == "act" for event in read_events(context)
    )
    return acting and _has(events, kinds.VIEW_COMMITTED)


def _heal(context: Context, watch: "_Watch") -> None:
    """A GPU of a busy node falls off the bus: the agent names it, its ranks leave between two steps, the node goes."""
    from holdfast_common import kinds

    with step("wait for the spare") as progress:
        if not watch.until(lambda events: _has(events, kinds.SPARE_READY), what="the spare", progress=progress):
            progress.update("the job ended before it was back")
            return
    victim = _last_node_of(watch.events)
    with step(f"plant {HEALED} on a busy node") as progress:
        planted = plant_fault(context, node=victim, fault=HEALED, for_s=None, gpu=0)
        progress.update(f"{victim}  {planted.detail}")
    with step("hand its ranks over") as progress:
        if watch.until(
            lambda events: _has(events, kinds.HANDED_OVER), what="the ranks to be handed over", progress=progress
        ):
            progress.update(_told_of_hand_over(watch.events))
    with step("replace the node that was named") as progress:
        watch.until(
            lambda events: any(
                event.kind == kinds.NODE_REPLACED and event.detail.get("replaces") == victim for event in events
            ),
            what="the replacement",
            progress=progress,
            job_may_end=True,
        )


def _told_of_hand_over(events: "list[Event]") -> str:
    from holdfast_common import kinds

    last = next(event for event in reversed(events) if event.kind == kinds.HANDED_OVER)
    rank, step_of, lost = (last.detail.get(name) for name in ("rank", "step", "steps_lost"))
    return f"rank {rank} after step {step_of}, {lost} steps lost"


def _has(events: "list[Event]", kind: str) -> bool:
    return any(event.kind == kind for event in events)


class _Watch:
    """The events since the rehearsal began, and whether its job is still alive."""

    def __init__(self, *, context: Context, job_id: str, since_ns: int) -> None:
        self._context, self._since_ns = context, since_ns
        self.job_id = job_id
        self.events: list[Event] = []

    def until(
        self,
        reached: "Callable[[list[Event]], bool]",
        *,
        what: str,
        progress: Step,
        job_may_end: bool = False,
    ) -> bool:
        """
        Wait for the events to say that something happened; False where the job ended well and they never did.

        Args:
            job_may_end: What is waited for comes whether or not the job goes on.

        Raises:
            CommandError: the job failed, or it took more than 600 s.
        """
        deadline = time.monotonic() + JOB_TIMEOUT_S
        over_since: float | None = None
        while not reached(self._read()):
            progress.update(self._newest())
            if self._job_has_ended() and not job_may_end:
                # What it wrote last is still on its way.
                over_since = over_since or time.monotonic()
                if time.monotonic() > over_since + EVENTS_WITHIN_S:
                    return False
            if time.monotonic() > deadline:
                raise CommandError(f"waited {JOB_TIMEOUT_S:g} s for {what}; look with: holdfast events", exit_code=1)
            time.sleep(POLL_S)
        progress.update(self._newest())
        return True

    def _read(self) -> "list[Event]":
        events = read_events(self._context, since_ns=self._since_ns)
        self.events = [e for e in events if e.source != "job" or e.job == self.job_id]
        return self.events

    def _newest(self) -> str:
        for event in reversed(self.events):
            if event.kind == "job_progress":
                return f"step {event.detail.get('step')}, loss {float(event.detail.get('loss', 0)):.3f} nats per byte"
        return f"job {self.job_id} is starting"

    def _job_has_ended(self) -> bool:
        """Whether it has ended well; raises CommandError when it has failed."""
        try:
            state = _outcome(self._context, job=self.job_id)
        except CommandError:
            return False  # a controller that does not answer now says it later
        if state in ("", "COMPLETED", COMPLETE):
            return bool(state)
        try:
            said = "\n".join(_output(self._context, job=self.job_id)[-TOLD_LINES:])
        except CommandError as error:
            said = f"({error})"
        raise CommandError(
            f"job {self.job_id} is {state}; its output ends with:\n{said}\n"
            f"all of it: holdfast logs --job {self.job_id}",
            exit_code=1,
        )


def _outcome(context: Context, *, job: str) -> str:
    return (kubernetes_outcome if context.orchestrator == "eks" else job_outcome)(context, job=job)


def _output(context: Context, *, job: str) -> list[str]:
    if context.orchestrator == "slurm":
        return job_output(context, job=job)
    return [line for _, lines in kubernetes_output(context, job=job) for line in lines[-TOLD_LINES:]]


def _last_node_of(events: "list[Event]") -> str:
    """
    Instance id of the last node that has a rank of the job.

    Any rank may die, but this one shows that rank 0 is not spared by luck.
    """
    from holdfast_common import kinds

    for event in reversed(events):
        if event.kind in (kinds.JOB_STARTED, kinds.JOB_RESUMED) and event.detail.get("nodes"):
            return str(event.detail["nodes"]).split(",")[-1]
    raise CommandError("the job did not say on which nodes it runs; look with: holdfast events", exit_code=1)
