"""Evidence of one job, within a few seconds: each source has a deadline, and a failed one is a line in ``unseen``."""

import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any, TypeVar

from holdfast.cli.collectors.changes import changes_of_drivers, changes_of_events, changes_of_jobs
from holdfast.cli.collectors.kubernetes import kubernetes_evidence
from holdfast.cli.collectors.output import read_end
from holdfast.cli.collectors.program import PROGRAM
from holdfast.cli.collectors.slurm import SlurmJob, slurm_job
from holdfast.cli.deployed import (
    AwsError,
    Context,
    UnreachableError,
    known_jobs,
    known_workloads,
    output_paths,
    read_events,
    run,
)
from holdfast.cli.diagnosis import (
    Evidence,
    FailureSeen,
    NodeProbe,
    Output,
    Pace,
    pace_of,
    parse_probe,
    ranks_of,
    side_by_side,
)
from holdfast.cli.slurm import JobRecord, newest_first
from holdfast.cli.terminal import CommandError
from holdfast_common import Event, kinds, slurm_answers

T = TypeVar("T")
PROBE_S = 8.0
MOST_NODES = 64
"""Nodes that are read; of a larger job the first ones."""
EVENTS_OF_S = 7 * 86_400
_MARKS = (kinds.JOB_PROGRESS, kinds.CHECKPOINT_SAVED)
_STARTS = (kinds.JOB_STARTED, kinds.JOB_RESUMED)


def active_jobs(context: Context) -> list[str]:
    """Jobs that have not ended: running ones first, each newest first."""
    if context.orchestrator == "eks":
        return [str(one.job) for one in known_workloads(context) if not one.has_ended]
    known = newest_first(known_jobs(context, since="now-1days"))
    records = [one for one in known if not one.has_ended and not one.spare_of]
    return [one.job_id for one in sorted(records, key=lambda one: one.state != "RUNNING")]


def collect(context: Context, *, job: str) -> Evidence:
    """Return the evidence. Raises: CommandError: no such job, or its controller does not answer."""
    if context.orchestrator == "eks":
        return kubernetes_evidence(context, job=job, events=lambda since_s: _events(context, since_s=since_s))
    name = job.partition("_[")[0]
    found = slurm_job(context, job=name)
    if found is not None and found.state in slurm_answers.WAITING:
        return _going_on(context, found, name=name)
    records = [one for one in known_jobs(context, jobs=[name]) if one.is_of(name)]
    if not records:
        raise CommandError(f"Slurm has no job {job}; to list jobs: holdfast jobs")
    return _ended(context, newest_first(records)[0])


def _ended(context: Context, record: JobRecord) -> Evidence:
    output, failure = read_end(context, files=output_paths(context, job=record.job_id), began_s=0.0)
    failures = [*([failure] if failure is not None else []), *([FailureSeen(text=record.why)] if record.why else [])]
    return Evidence(
        job=record.job_id, state=record.state, output=output, failures=failures if record.has_failed else []
    )


def _going_on(context: Context, job: SlurmJob, *, name: str) -> Evidence:
    if job.pending is not None:
        return Evidence(job=name, state=job.state, pending=[job.pending])
    unseen: list[str] = []
    nodes = list(job.nodes)[:MOST_NODES]
    if len(job.nodes) > MOST_NODES:
        unseen.append(f"{len(job.nodes) - MOST_NODES} of {len(job.nodes)} nodes: only the first {MOST_NODES} are read")
    started_s = _whole(job.fields.get("StartTime", ""))
    with ThreadPoolExecutor(max_workers=len(nodes) + 3) as pool:
        probes = {node: pool.submit(_probe, context, node=node, jobs=job.numbers) for node in nodes}
        logged = pool.submit(_seen, lambda: _events(context, since_s=started_s), "events", [], unseen)
        output = pool.submit(
            _seen,
            lambda: _output(context, job, name=name, began_s=started_s),
            "output",
            (Output(), None),
            unseen,
        )
        before = pool.submit(_seen, lambda: known_jobs(context), "earlier jobs", [], unseen)
    found = {node: future.result() for node, future in probes.items()}
    seen = [one for one in found.values() if isinstance(one, NodeProbe)]
    whole = name.partition("_")[0]
    if whole != name and _reaches(seen) > len(nodes) and (array := slurm_job(context, job=whole)) is not None:
        return _going_on(context, array, name=whole)
    silent = {node: one for node, one in found.items() if isinstance(one, str)}
    text, failure = output.result()
    records = before.result()
    record = next((one for one in records if one.is_of(name)), None)
    now_s, events = time.time(), logged.result()
    evidence = Evidence(
        job=name,
        state=job.state,
        drained=job.drained,
        silent_nodes=silent,
        output=text,
        failures=[failure] if failure is not None else [],
        ends_s=job.ends_s,
        changes=[
            *changes_of_events(events, job=name, since_s=started_s),
            *changes_of_jobs(records, record, started_s=started_s),
            *changes_of_drivers({one.node: one.driver for one in seen}, at_s=now_s),
        ],
    )
    found_out = _with_ranks(replace(evidence, unseen=tuple(unseen)), seen, events, now_s=now_s, started_s=started_s)
    return replace(found_out, pending=[job.late]) if found_out.starting and job.late is not None else found_out


def _reaches(probes: Sequence[NodeProbe]) -> int:
    """Return how many nodes the launchers of some form one job with; of an array, those of other tasks."""
    return max((len(status.get("in_reach", ())) for probe in probes for status in probe.statuses), default=0)


def _output(context: Context, job: SlurmJob, *, name: str, began_s: float) -> tuple[Output, FailureSeen | None]:
    """End of the output of the job itself, or else of its steps."""
    found = read_end(context, files=job.files, began_s=began_s)
    return found if found[0].lines else read_end(context, files=output_paths(context, job=name), began_s=began_s)


def _with_ranks(
    evidence: Evidence, probes: Sequence[NodeProbe], events: Sequence[Event], *, now_s: float, started_s: float
) -> Evidence:
    ranks = sorted((rank for probe in probes for rank in ranks_of(probe)), key=lambda one: one.rank)
    statuses = [status for probe in probes for status in probe.statuses]
    worlds = [int(status["world_size"]) for status in statuses if status.get("world_size")]
    variables = [one["variables"] for probe in probes for one in probe.processes]
    worlds = worlds or [int(one["WORLD_SIZE"]) for one in variables if str(one.get("WORLD_SIZE", "")).isdecimal()]
    suspects = {node: _healthy(node, probes) for node in (probe.node for probe in probes)}
    measured = {probe.node: probe.measured() for probe in probes}
    deaf = [(probe, one) for probe in probes for one in probe.launchers if not one.get("status")]
    stopped = [(probe.node, int(one["pid"])) for probe, one in deaf if _is_stopped(probe, int(one["pid"]))]
    deadlines = {
        name.removesuffix("_s"): float(status[name])
        for status in statuses
        for name in ("frozen_s", "silence_s", "progress_s")
        if status.get(name) is not None
    }
    return replace(
        evidence,
        ranks=ranks,
        world_size=max(worlds, default=None),
        full=[f"{probe.node}:{path}" for probe in probes for path in probe.full],
        starting=next((str(one["waits_for"]) for one in statuses if not one["generation"] and one["waits_for"]), ""),
        recovering=next((str(one["requested"]) for one in statuses if one.get("requested")), ""),
        deadlines=deadlines,
        numbers={node: side_by_side(node, beside, measured) for node, beside in suspects.items()},
        remedies=[_remedy(probe, one) for probe in probes for one in probe.incidents],
        stopped_launchers=stopped,
        pace=_pace_or_output(
            _pace(statuses, events, job=evidence.job, now_s=now_s, started_s=started_s), evidence.output
        ),
        unseen=[
            *evidence.unseen,
            *(f"launcher of node {probe.node} (pid {one['pid']}): no answer at {one['path']}" for probe, one in deaf),
        ],
    )


def _is_stopped(probe: NodeProbe, pid: int) -> bool:
    return any(one["pid"] == pid and str(one["states"])[-1:] in ("T", "t") for one in probe.processes)


def _pace_or_output(pace: Pace, output: Output) -> Pace:
    """Of a job that reports no steps, the pace of its output."""
    if pace.age_s is not None or output.age_s is None:
        return pace
    return Pace(age_s=output.age_s, usual_s=output.every_s, by_output=True)


def _pace(
    statuses: Sequence[Mapping[str, Any]],
    events: Sequence[Event],
    *,
    job: str,
    now_s: float,
    started_s: float,
) -> Pace:
    own = [one for one in events if one.job and one.job == job.partition("_")[0] and one.time_ns / 1e9 >= started_s - 1]
    marks: list[tuple[float, float]] = []
    for event in own:
        step = event.detail.get("step")
        if event.kind in _STARTS:
            marks = [(event.time_ns / 1e9, float(step) if isinstance(step, int | float) else 0.0)]
        elif event.kind in _MARKS and isinstance(step, int | float) and marks:
            marks.append((event.time_ns / 1e9, float(step)))
    ages = [float(one["step_age_s"]) for one in statuses if one.get("step_age_s") is not None]
    longest = [float(one["longest_s"]) for one in statuses if one.get("longest_s") is not None]
    pace = pace_of(marks, now_s=now_s, age_s=min(ages, default=None), longest_s=max(longest, default=None))
    steps = [int(one["step"]) for one in statuses if one.get("step")]
    return replace(pace, step=max([*steps, pace.step or 0]) or pace.step)


def _probe(context: Context, *, node: str, jobs: Sequence[str]) -> NodeProbe | str:
    """Report of a node, or the reason why there is none."""
    try:
        answer = run(context, node=node, argv=["python3", "-", ",".join(jobs)], text=PROGRAM, timeout_s=PROBE_S)
        return parse_probe(node, answer.stdout)
    except CommandError as error:
        return str(error).partition("; see:")[0]
    except (ValueError, KeyError, TypeError) as error:
        return f"python3 printed nothing of use: {error}"


def _events(context: Context, *, since_s: float) -> list[Event]:
    since_ns = int(max(since_s - 60, time.time() - EVENTS_OF_S) * 1e9)
    try:
        return read_events(context, since_ns=since_ns)
    except AwsError as error:
        if error.code == "ResourceNotFoundException":
            return []
        raise


def _seen(read: Callable[[], T], what: str, otherwise: T, unseen: list[str]) -> T:
    try:
        return read()
    except (CommandError, AwsError, UnreachableError) as error:
        unseen.append(f"{what}: {error}")
        return otherwise


def _healthy(node: str, probes: Sequence[NodeProbe]) -> str:
    """Another node, without an incident where there is one."""
    others = [one for one in probes if one.node != node]
    return next((one.node for one in others if not one.incidents), others[0].node if others else "")


def _remedy(probe: NodeProbe, found: Mapping[str, Any]) -> str:
    asks = str(found.get("remedy", "none"))
    what = "requires nothing" if asks == "none" else f"requires {asks}"
    when = ", at the next boundary" if found.get("when") == "boundary" else ""
    return f"health agent of {probe.node}: {found.get('fault', 'fault')} {what}{when}: holdfast incidents"


def _whole(text: str) -> float:
    return float(text) if text.isdecimal() else 0.0
