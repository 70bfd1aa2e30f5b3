"""
Jobs that Slurm knows: its controller for minutes, its accounting for good.

Works for any job, whoever submitted it and whether or not it writes events.
"""

import contextlib
import re
from collections.abc import Sequence

from holdfast.cli.deployed.cluster import controller_hostname
from holdfast.cli.deployed.nodes import run
from holdfast.cli.deployed.sessions import Context
from holdfast.cli.slurm import (
    SACCT,
    SQUEUE,
    JobRecord,
    Submission,
    first_host,
    merged,
    outcome,
    output_files,
    parse_sacct,
    parse_squeue,
    parse_submission,
)
from holdfast.cli.terminal import CommandError, error_console
from holdfast_common import slurm_answers

JOB_ID = re.compile(r"\d{1,10}(_\d{1,10})?", re.ASCII)
_TIMEOUT_S = 20.0
HANDED_OVER = 75
"""How a launcher ends whose ranks went to the spare (docs/health/hand-over.md)."""

# The job file's options, of the first of these paths that is a file.
_READ_OPTIONS = """cd -- "$1" 2>/dev/null || exit 0
shift
for path in "$@"; do
    if [ -f "$path" ]; then grep -a '^#SBATCH' -- "$path"; exit 0; fi
done
"""
_READ_FILE = '[ -r "$1" ] || exit 3; if [ "$2" = all ]; then cat -- "$1"; else tail -n "$2" -- "$1"; fi'


def check_job_id(job: str) -> str:
    """
    ``job``, where it is one.

    Raises:
        CommandError: it is not a number, nor NUMBER_TASK.
    """
    if not JOB_ID.fullmatch(job):
        raise CommandError(f"got {job!r} for a job; allowed: a number as holdfast submit prints it, or NUMBER_TASK")
    return job


def accounting(context: Context, *, jobs: Sequence[str] = (), since: str = "now-7days") -> list[JobRecord]:
    """
    What Slurm has of these jobs, or of all since then: accounting, and its controller for what that does not know yet.

    Raises:
        CommandError: the cluster has no accounting, or Slurm does not answer.
    """
    controller = controller_hostname(context)
    # Asked first, so that a job that the controller forgets meanwhile is in accounting.
    queued = _queued(context, controller=controller, jobs=jobs)
    which = ["--jobs", ",".join(jobs)] if jobs else ["--starttime", since]
    argv = ["env", "SLURM_TIME_FORMAT=%s", *SACCT, *which]
    answer = run(context, node=controller, argv=argv, timeout_s=_TIMEOUT_S)
    if answer.returncode:
        raise CommandError(f"Slurm's accounting does not answer: {answer.stderr.strip() or answer.stdout.strip()}")
    return merged(parse_sacct(answer.stdout), queued or [])


def known_jobs(context: Context, *, jobs: Sequence[str] = (), since: str = "now-7days") -> list[JobRecord]:
    """
    The same, and where there is no accounting what the controller has, with a word about it to people.

    Raises:
        CommandError: neither answers.
    """
    try:
        return accounting(context, jobs=jobs, since=since)
    except CommandError as error:
        queued = _queued(context, controller=controller_hostname(context), jobs=jobs)
        if queued is None:
            raise
        error_console.print(f"{error}; known are only the jobs that Slurm's controller still has", style="yellow")
        return queued


def _queued(context: Context, *, controller: str, jobs: Sequence[str]) -> list[JobRecord] | None:
    """What the controller has; None where it does not answer."""
    which = ["--jobs", ",".join(jobs)] if jobs else []
    argv = ["env", "SLURM_TIME_FORMAT=%s", *SQUEUE, *which]
    try:
        answer = run(context, node=controller, argv=argv, timeout_s=_TIMEOUT_S)
    except CommandError:
        return None
    if answer.returncode:
        return [] if "Invalid job id" in answer.stderr else None
    return parse_squeue(answer.stdout)


def job_outcome(context: Context, *, job: str) -> str:
    """How a job has ended, whatever it is; empty while it goes on, or while nobody can tell."""
    with contextlib.suppress(CommandError):
        argv = ["scontrol", "--oneliner", "show", "job", check_job_id(job)]
        shown = run(context, node=controller_hostname(context), argv=argv, timeout_s=_TIMEOUT_S)
        if shown.returncode == 0 and (states := _states(shown.stdout)):
            return outcome(states)
        return outcome(record.state for record in accounting(context, jobs=[job]))
    return ""


def _states(shown: str) -> list[str]:
    """Of each task. One that has handed its ranks over is about to be requeued, whatever Slurm calls it till then."""
    states = []
    for fields in slurm_answers.parse_jobs(shown):
        if state := fields.get("JobState", ""):
            has_left = state == "FAILED" and slurm_answers.parse_exit(fields.get("ExitCode", ""))[0] == HANDED_OVER
            states.append("PENDING" if has_left else state)
    return states


def output_paths(context: Context, *, job: str) -> list[tuple[str, str]]:
    """
    (path, host on which it was written) of the output of a job, of each task where it is an array.

    The error output follows, where it has a file of its own.

    Raises:
        CommandError: Slurm has never heard of the job, or it has no file.
    """
    check_job_id(job)
    controller = controller_hostname(context)
    if found := _of_controller(context, controller=controller, job=job):
        return found
    records = known_jobs(context, jobs=[job])
    if not records:
        raise CommandError(f"Slurm knows no job {job}; those it knows: holdfast jobs")
    return list(
        dict.fromkeys(file for one in records for file in _remembered(context, controller=controller, record=one))
    )


def _of_controller(context: Context, *, controller: str, job: str) -> list[tuple[str, str]]:
    shown = run(context, node=controller, argv=["scontrol", "show", "job", job])
    return [] if shown.returncode else parse_scontrol(shown.stdout)


def parse_scontrol(text: str) -> list[tuple[str, str]]:
    """The same from ``scontrol show job``; a job without a file has none."""
    found = []
    for block in text.split("\n\n"):
        host = re.search(r"^ *BatchHost=(\S+)$", block, re.MULTILINE)
        paths = (re.search(rf"^ *{name}=(.+)$", block, re.MULTILINE) for name in ("StdOut", "StdErr"))
        found += [(path[1], host[1] if host else "") for path in paths if path]
    return list(dict.fromkeys(found))


def read_output(context: Context, *, path: str, host: str, last: int | None = None) -> list[str] | None:
    """The lines of a file, on the controller or else where the job ran; None where there is no such file."""
    controller = controller_hostname(context)
    for node in dict.fromkeys((controller, host)):
        if not node:
            continue
        try:
            argv = ["/bin/sh", "-c", _READ_FILE, "read", path, "all" if last is None else str(last)]
            answer = run(context, node=node, argv=argv, timeout_s=_TIMEOUT_S)
        except CommandError:
            continue
        if not answer.returncode:
            return answer.stdout.splitlines()
    return None


def last_lines(context: Context, record: JobRecord, *, count: int) -> list[str]:
    """The end of what a job said; empty where nobody can tell."""
    try:
        controller = controller_hostname(context)
        known = _of_controller(context, controller=controller, job=record.job_id)
        files = known or _remembered(context, controller=controller, record=record)
    except CommandError:
        return []
    # The error output is the last, and says why where there is one.
    for path, host in reversed(files):
        lines = read_output(context, path=path, host=host, last=count * 3) or []
        if said := [line for line in lines if line.strip()]:
            return said[-count:]
    return []


def _remembered(context: Context, *, controller: str, record: JobRecord) -> list[tuple[str, str]]:
    submission = parse_submission(record.submit_line)
    if submission.program not in ("sbatch", ""):
        raise CommandError(
            f"job {record.job_id} was started by {submission.program}; its output went to whoever started it"
        )
    script = _script(context, controller=controller, record=record, submission=submission)
    host = first_host(record.nodes)
    return [(path, host) for path in output_files(record, submission=submission, script=script)]


def _script(context: Context, *, controller: str, record: JobRecord, submission: Submission) -> list[str]:
    argv = ["/bin/sh", "-c", _READ_OPTIONS, "options", record.work_dir or "/", *submission.scripts]
    try:
        return run(context, node=controller, argv=argv).stdout.splitlines()
    except CommandError:
        return []
