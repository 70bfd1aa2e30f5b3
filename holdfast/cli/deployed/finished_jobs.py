"""Finished jobs, with their exit codes, reasons and last lines."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime

from holdfast.cli.deployed.sessions import Context
from holdfast.cli.deployed.slurm_jobs import accounting, last_lines_of
from holdfast.cli.slurm import Failure, JobRecord, newest_first

LINES, MOST_ENDED = 3, 20
MOST_SHOWN = 3
"""Failed jobs whose last lines are read: each is a visit to the cluster."""

SUDO_ERROR = 'The "no new privileges" flag is set'
SUDO_HINT = (
    "jobs of the local cloud cannot use sudo, which jobs on HyperPod can; give the job to root with "
    "holdfast submit --user root, or do it on the nodes with holdfast ssh"
)


@dataclass(frozen=True, kw_only=True)
class JobRow:
    job_id: str
    name: str
    user: str
    state: str
    exit_code: int
    submitted: str
    """Time in UTC as ISO 8601 has it; empty where there is none."""
    started: str
    ended: str
    elapsed: str
    nodes: str
    why: str
    """What became of a job that failed, or what it waits for."""
    last_lines: list[str]
    """Of its output, for the newest that failed: the end of the first traceback, or the last lines."""
    hint: str = ""
    """What its last words mean where they mislead."""


def ended_jobs(context: Context) -> list[JobRow]:
    """Jobs of the last day, at most 20: failed ones first, each newest first. Raises: CommandError."""
    ended = (one for one in accounting(context, since="now-1days") if one.has_ended)
    return rows(context, newest_first(ended)[:MOST_ENDED])


def rows(context: Context, records: Iterable[JobRecord]) -> list[JobRow]:
    """Rows of records; the newest failed ones have their last lines."""
    explained = 0
    found = []
    for record in records:
        lines: list[str] = []
        failure: Failure | None = None
        if record.has_failed and record.started_s is not None and explained < MOST_SHOWN:
            explained += 1
            lines, failure = last_lines_of(context, record, count=LINES)
        found.append(row(record, last_lines=lines, failure=failure))
    return found


def row(record: JobRecord, *, last_lines: list[str], failure: Failure | None = None) -> JobRow:
    why = record.why
    if failure is not None:
        why = ": ".join(filter(None, (why, failure.where, failure.error)))
    return JobRow(
        job_id=record.job_id,
        name=record.name,
        user=record.user,
        state=record.state,
        exit_code=record.exit_code,
        submitted=shown_time(record.submitted_s),
        started=shown_time(record.started_s),
        ended=shown_time(record.ended_s),
        elapsed=shown_span(record.elapsed_s),
        nodes=record.nodes,
        why=why,
        last_lines=last_lines,
        hint=SUDO_HINT if any(SUDO_ERROR in line for line in last_lines) else "",
    )


def shown_time(seconds: int | None) -> str:
    return "" if seconds is None else datetime.fromtimestamp(seconds, tz=UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def shown_span(seconds: int) -> str:
    """Format as squeue does: days-hours:minutes:seconds."""
    days, rest = divmod(seconds, 86400)
    hours, rest = divmod(rest, 3600)
    minutes, rest = divmod(rest, 60)
    clock = f"{minutes}:{rest:02d}" if not (hours or days) else f"{hours:02d}:{minutes:02d}:{rest:02d}"
    return f"{days}-{clock}" if days else clock
