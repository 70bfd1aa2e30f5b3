"""
``holdfast rehearse``: break a node under a training job, or resize an elastic job, and watch the recovery.

The summary is computed from the cluster's events alone.
"""

import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from holdfast.cli.deployed import Context, controller_hostname, job_outcome, read_events, read_status, run
from holdfast.cli.rehearsal.faults import Fault, inject
from holdfast.cli.rehearsal.planting import plant_fault
from holdfast.cli.rehearsal.resizing import has_all_its_nodes, sizes_of, take_and_give_back
from holdfast.cli.rehearsal.watching import Watch
from holdfast.cli.submission import check_fits, prepare_data, submit_any
from holdfast.cli.terminal import CommandError, console, step
from holdfast.cli.views import summary

if TYPE_CHECKING:
    from holdfast_common import Event

HEALED = "xid-79"
"""What the agents of a rehearsal are shown."""
LATE_S = 15.0


def rehearse_jobs(
    context: Context, *, files: Sequence[Path], prepare: Path | None, fault: Fault = Fault.destroy
) -> "list[Event]":
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


def _rehearse(context: Context, *, file: Path, fault: Fault) -> Watch:
    from holdfast_common import kinds

    since_ns = time.time_ns()
    job_id = submit_any(context, file=file, user="ubuntu")
    if not job_id:
        raise CommandError(f"got {file}, of which sbatch submits nothing; remove its option --test-only")
    watch = Watch(context=context, job_id=job_id, since_ns=since_ns)
    with step("train") as progress:
        if not watch.until(_may_begin, what="a checkpoint, or all nodes of an elastic job", progress=progress):
            raise CommandError(
                f"job {job_id} completed without a checkpoint event, so no node was broken; "
                f"a job for a rehearsal writes such events and trains for a while; "
                f"its output: holdfast logs --job {job_id}",
                exit_code=1,
            )
    if sizes_of(watch.events):
        take_and_give_back(context, watch)
    else:
        _break(context, watch, fault=fault)
    with step("train to the end") as progress:
        watch.until(lambda events: _has(events, kinds.JOB_FINISHED), what="the job to finish", progress=progress)
        if context.orchestrator == "slurm":
            end_late_tasks(context, job=job_id)
    return watch


def end_late_tasks(context: Context, *, job: str) -> None:
    """Cancel tasks that Slurm has begun again at the job's end: they wait for launchers that are gone."""
    until = time.monotonic() + LATE_S
    while not job_outcome(context, job=job):
        if time.monotonic() >= until:
            run(context, node=controller_hostname(context), argv=["scancel", "--quiet", job])
            return
        time.sleep(0.5)


def _may_begin(events: "list[Event]") -> bool:
    from holdfast_common import kinds

    return has_all_its_nodes(events) if sizes_of(events) else _has(events, kinds.CHECKPOINT_SAVED)


def _break(context: Context, watch: Watch, *, fault: Fault) -> None:
    from holdfast_common import kinds

    victim = _last_node_of(watch.events)
    with step(f"{fault.value} a node under the job") as progress:
        instance_id = inject(context, node=victim, fault=fault)
        progress.update(victim if victim == instance_id else f"{victim} ({instance_id})")
    with step("notice") as progress:
        watch.until(
            lambda events: bool(_of_nodes(events, kinds.NODE_LOST)),
            what="the detection of the lost node",
            progress=progress,
            job_may_end=True,
        )
    with step("resume") as progress:
        if not watch.until(lambda events: _has(events, kinds.JOB_RESUMED), what="the job to resume", progress=progress):
            progress.update("the job ended without it")
    with step("replace the node") as progress:
        watch.until(
            lambda events: bool(_of_nodes(events, kinds.NODE_REPLACED)),
            what="the replacement",
            progress=progress,
            job_may_end=True,
        )
    if _may_heal(context, watch.events):
        _heal(context, watch)


def _may_heal(context: Context, events: "list[Event]") -> bool:
    """Return True if health agents act, and launchers of the job can hand ranks over."""
    from holdfast_common import kinds

    acting = any(
        event.kind == kinds.AGENT_STARTED and event.source == "agent" and event.detail.get("mode") == "act"
        for event in read_events(context)
    )
    return acting and _has(events, kinds.VIEW_COMMITTED)


def _heal(context: Context, watch: Watch) -> None:
    from holdfast_common import kinds

    with step("wait for the spare") as progress:
        if not watch.until(_spare_is_back, what="the spare", progress=progress):
            progress.update("the job ended before the spare was ready")
            return
    victim = _last_node_of(watch.events)
    with step(f"plant {HEALED} on a busy node") as progress:
        planted = plant_fault(context, node=victim, fault=HEALED, for_s=None, gpu=0)
        progress.update(f"{victim}  {planted.detail}")
    with step("hand its ranks over") as progress:
        if watch.until(
            lambda events: _has(events, kinds.HANDED_OVER), what="the ranks to be handed over", progress=progress
        ):
            progress.update(_hand_over_line(watch.events))
    with step("replace the reported node") as progress:
        watch.until(
            lambda events: any(
                event.detail.get("replaces") == victim for event in _of_nodes(events, kinds.NODE_REPLACED)
            ),
            what="the replacement",
            progress=progress,
            job_may_end=True,
        )


def _spare_is_back(events: "list[Event]") -> bool:
    """Return True if a launcher became ready as a spare after the loss."""
    from holdfast_common import kinds

    lost_ns = max(event.time_ns for event in _of_nodes(events, kinds.NODE_LOST))
    return any(event.kind == kinds.SPARE_READY and event.time_ns > lost_ns for event in events)


def _hand_over_line(events: "list[Event]") -> str:
    from holdfast_common import kinds

    last = next(event for event in reversed(events) if event.kind == kinds.HANDED_OVER)
    rank, step_of, lost = (last.detail.get(name) for name in ("rank", "step", "steps_lost"))
    return f"rank {rank} after step {step_of}, {lost} steps lost"


def _of_nodes(events: "list[Event]", kind: str) -> "list[Event]":
    """Events of nodes, which a job cannot report."""
    return [event for event in events if event.kind == kind and event.source != "job"]


def _has(events: "list[Event]", kind: str) -> bool:
    return any(event.kind == kind for event in events)


def _last_node_of(events: "list[Event]") -> str:
    from holdfast_common import kinds

    for event in reversed(events):
        if event.kind in (kinds.JOB_STARTED, kinds.JOB_RESUMED) and event.detail.get("nodes"):
            return str(event.detail["nodes"]).split(",")[-1]
    raise CommandError("no event names the nodes of the job; see: holdfast events", exit_code=1)
