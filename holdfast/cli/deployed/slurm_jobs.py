"""
Jobs of Slurm: its controller keeps them for minutes, its accounting for good.

Works for any job, whoever submitted it and whether or not it writes events. slurmctld sends waiting jobs to slurmdbd
every few seconds (Slurm, accounting_storage/slurmdbd, ``_set_db_inx_thread``), so both are queried.
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
    Failure,
    JobRecord,
    StepFiles,
    Submission,
    first_failure,
    first_host,
    merged,
    named_error,
    outcome,
    output_files,
    parse_sacct,
    parse_squeue,
    parse_submission,
    step_files,
    submit_folder,
)
from holdfast.cli.terminal import CommandError, error_console
from holdfast_common import slurm_answers

JOB_ID = re.compile(r"\d{1,10}(_\d{1,10}|_\[[\d,%:-]{1,200}\]|\+\d{1,5})?", re.ASCII)
MOST_STEP_FILES = 64
"""Of one step: each is read by itself."""
MOST_TASKS = 4_001
"""Of a range of an array: Slurm allows as many by default at once (slurm.conf, MaxArraySize)."""
_TIMEOUT_S = 20.0
HANDED_OVER = 75
"""How a launcher ends whose ranks went to the spare (docs/concepts/hand-over.md)."""

# The job file's options, of the first of these paths that is a file.
_READ_OPTIONS = """cd -- "$1" 2>/dev/null || exit 0
shift
for path in "$@"; do
    if [ -f "$path" ]; then grep -a '^#SBATCH' -- "$path"; exit 0; fi
done
"""
# The lines that say why a job failed may be far from the end of a long output.
_READ_ENDS = """[ -r "$1" ] || exit 3
if [ "$(stat -c %s -- "$1")" -le 4194304 ]; then exec cat -- "$1"; fi
head -c 2097152 -- "$1"; echo; tail -c 2097152 -- "$1"
"""
_FIND_FILES = """[ -d "$1" ] || exit 0
find "$1" -mindepth "$2" -maxdepth "$2" -type f -printf '%P\\0'
"""
_STEPS = ("sacct", "--allusers", "--noheader", "--parsable2", "--format=JobIDRaw,SubmitLine")
_WITH_WIDTH = re.compile(r"%\d+[A-Za-z]")
_SPOOLED = re.compile(r"/job0*(\d+)/slurm_script$")
"""Copy of a job file, which a job that calls ``sbatch "$0"`` submits and which is removed with the job."""
MOST_LINKS = 20
"""Of a chain of such jobs."""
_READ_FILE = '[ -r "$1" ] || exit 3; cat -- "$1"'


def check_job_id(job: str) -> str:
    """Return ``job``. Raises: CommandError: not a name that ``holdfast jobs`` prints."""
    if not JOB_ID.fullmatch(job):
        raise CommandError(
            f"got {job!r} for a job; allowed: a number as holdfast submit prints it, NUMBER_TASK of an array, or "
            "NUMBER+PART of a heterogeneous job"
        )
    return job


def expand_job_id(job: str) -> list[str]:
    """Split ``21_[0-2,5%1]``, as the queue names pending tasks, into tasks. Raises: CommandError: no job's name."""
    number, bracket, rest = check_job_id(job).partition("_[")
    if not bracket:
        return [job]
    tasks: list[int] = []
    for part in rest.rstrip("]").partition("%")[0].split(","):
        if (found := re.fullmatch(r"(\d{1,9})(?:-(\d{1,9})(?::(\d{1,9}))?)?", part)) is None:
            raise CommandError(f"got {job!r} for a job; allowed: NUMBER_[FIRST-LAST], as the queue names waiting tasks")
        tasks += range(int(found[1]), int(found[2] or found[1]) + 1, max(int(found[3] or 1), 1))[:MOST_TASKS]
    return [f"{number}_{task}" for task in tasks]


def accounting(context: Context, *, jobs: Sequence[str] = (), since: str = "now-7days") -> list[JobRecord]:
    """Return jobs of accounting, completed by the controller. Raises: CommandError: no accounting, or no answer."""
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
    """Return the same, or the controller's jobs with a warning. Raises: CommandError: neither answers."""
    try:
        return accounting(context, jobs=jobs, since=since)
    except CommandError as error:
        queued = _queued(context, controller=controller_hostname(context), jobs=jobs)
        if queued is None:
            raise
        error_console.print(f"{error}; showing only jobs that Slurm's controller still has", style="yellow")
        return queued


def task_of(context: Context, *, job: str) -> str:
    """Name of the task or part whose own number this is; empty for any other job."""
    named = (one for one in known_jobs(context, jobs=[job]) if one.number == job)
    return next((one.job_id for one in named if not re.match(rf"{job}(?!\d)", one.job_id)), "")


def _queued(context: Context, *, controller: str, jobs: Sequence[str]) -> list[JobRecord] | None:
    which = ["--jobs", ",".join(jobs)] if jobs else []
    argv = ["env", "SLURM_TIME_FORMAT=%s", *SQUEUE, *which]
    try:
        answer = run(context, node=controller, argv=argv, timeout_s=_TIMEOUT_S)
    except CommandError:
        return None
    if answer.returncode:
        return [] if "Invalid job id" in answer.stderr else None
    # squeue shows all parts of a heterogeneous job, whichever is named.
    found = parse_squeue(answer.stdout)
    return [one for one in found if not jobs or any(one.is_of(job) for job in jobs)]


def job_outcome(context: Context, *, job: str) -> str:
    """Outcome of a finished job; empty while it runs, or if no source knows it."""
    with contextlib.suppress(CommandError):
        argv = ["scontrol", "--oneliner", "show", "job", check_job_id(job)]
        shown = run(context, node=controller_hostname(context), argv=argv, timeout_s=_TIMEOUT_S)
        if shown.returncode == 0 and (states := _states(shown.stdout)):
            return outcome(states)
        return outcome(record.state for record in accounting(context, jobs=[job]))
    return ""


def _states(shown: str) -> list[str]:
    states = []
    for fields in slurm_answers.parse_jobs(shown):
        if state := fields.get("JobState", ""):
            has_left = state == "FAILED" and slurm_answers.parse_exit(fields.get("ExitCode", ""))[0] == HANDED_OVER
            states.append("PENDING" if has_left else state)
    return states


def output_paths(context: Context, *, job: str) -> list[tuple[str, str]]:
    """
    Return (path, host) of the output of a job, of each task or part if it has several.

    The error output follows if it has its own file, and then the files of steps.

    Raises:
        CommandError: Slurm has no such job, or the job has no file.
    """
    job = check_job_id(job).partition("_[")[0]
    controller = controller_hostname(context)
    found = _of_controller(context, controller=controller, job=job)
    records = known_jobs(context, jobs=[job])
    if not records and not found:
        raise CommandError(f"Slurm has no job {job}; to list jobs: holdfast jobs")
    if not found:
        found = [file for one in records for file in _remembered(context, controller=controller, record=one)]
    steps = (file for one in records for file in step_paths(context, record=one))
    return list(dict.fromkeys([*found, *steps]))


def step_paths(context: Context, *, record: JobRecord) -> list[tuple[str, str]]:
    """Output files of srun steps; empty if no source knows them."""
    controller = controller_hostname(context)
    try:
        asked = run(context, node=controller, argv=[*_STEPS, "--jobs", record.number], timeout_s=_TIMEOUT_S)
    except CommandError:
        return []
    found: list[tuple[str, str]] = []
    for line in asked.stdout.splitlines():
        name, _, words = line.partition("|")
        number, dot, step = name.partition(".")
        if number == record.number and dot and words:
            for files in step_files(words, record=record, step=step):
                found += _matching(context, controller=controller, record=record, files=files)
    return found


def _matching(context: Context, *, controller: str, record: JobRecord, files: StepFiles) -> list[tuple[str, str]]:
    argv = ["/bin/sh", "-c", _FIND_FILES, "find", files.folder, str(files.depth)]
    listed = run(context, node=controller, argv=argv, timeout_s=_TIMEOUT_S).stdout.split("\0")
    names = sorted((name for name in listed if files.name.fullmatch(name)), key=_by_numbers)
    return [(f"{files.folder}/{name}", first_host(record.nodes)) for name in names[:MOST_STEP_FILES]]


def _by_numbers(name: str) -> list[tuple[int, str]]:
    return [(int(part), "") if part.isdecimal() else (0, part) for part in re.split(r"(\d+)", name)]


def _of_controller(context: Context, *, controller: str, job: str) -> list[tuple[str, str]]:
    """Files of a job; empty if it is forgotten, or if a pattern is not expanded, as 22.05 leaves those with a width."""
    shown = run(context, node=controller, argv=["scontrol", "show", "job", job])
    found = [] if shown.returncode else parse_scontrol(shown.stdout)
    return [] if any(_WITH_WIDTH.search(path) for path, _ in found) else found


def parse_scontrol(text: str) -> list[tuple[str, str]]:
    """Parse ``scontrol show job``; a job without a file has no path."""
    found = []
    for block in text.split("\n\n"):
        host = re.search(r"^ *BatchHost=(\S+)$", block, re.MULTILINE)
        paths = (re.search(rf"^ *{name}=(.+)$", block, re.MULTILINE) for name in ("StdOut", "StdErr"))
        found += [(path[1], host[1] if host else "") for path in paths if path]
    return list(dict.fromkeys(found))


def read_output(context: Context, *, path: str, host: str) -> list[str] | None:
    """Lines of a file on the controller, or on the job's host; None if it does not exist."""
    return _printed(context, argv=["/bin/sh", "-c", _READ_FILE, "read", path], host=host)


def _ends_of(context: Context, *, path: str, host: str) -> list[str]:
    return _printed(context, argv=["/bin/sh", "-c", _READ_ENDS, "read", path], host=host) or []


def _printed(context: Context, *, argv: list[str], host: str) -> list[str] | None:
    controller = controller_hostname(context)
    for node in dict.fromkeys((controller, host)):
        if not node:
            continue
        try:
            answer = run(context, node=node, argv=argv, timeout_s=_TIMEOUT_S)
        except CommandError:
            continue
        if not answer.returncode:
            return answer.stdout.splitlines()
    return None


def last_lines_of(context: Context, record: JobRecord, *, count: int) -> tuple[list[str], Failure | None]:
    """First traceback of a job and its end, or else the last lines of its output and the first that names an error."""
    try:
        controller = controller_hostname(context)
        known = _of_controller(context, controller=controller, job=record.job_id)
        files = known or _remembered(context, controller=controller, record=record)
    except CommandError:
        return [], None
    host = record.nodes if record.nodes and record.nodes == first_host(record.nodes) else ""
    last: list[str] = []
    error = ""
    # The error output is the last, and says why where there is one; steps may have files of their own.
    for path, where in [*reversed(files), *step_paths(context, record=record)]:
        lines = [line for line in _ends_of(context, path=path, host=where) if line.strip()]
        if failure := first_failure(lines, host=host):
            return list(failure.lines), failure
        last, error = last or lines[-count:], error or named_error(lines)
    return last, Failure(error=error, lines=()) if error else None


def _remembered(context: Context, *, controller: str, record: JobRecord) -> list[tuple[str, str]]:
    submission = parse_submission(record.submit_line)
    if submission.program not in ("sbatch", ""):
        raise CommandError(
            f"job {record.job_id} was started by {submission.program}; its output went to the terminal that started it"
        )
    script = _script(context, controller=controller, record=record, submission=submission)
    host = first_host(record.nodes)
    return [(path, host) for path in output_files(record, submission=submission, script=script)]


def _script(context: Context, *, controller: str, record: JobRecord, submission: Submission) -> list[str]:
    for _ in range(MOST_LINKS):
        copied = _SPOOLED.search(submission.scripts[0]) if submission.scripts else None
        before = known_jobs(context, jobs=[copied[1]]) if copied else []
        if not before:
            break
        record, submission = before[0], parse_submission(before[0].submit_line)
    folder = submit_folder(record, submission=submission)
    argv = ["/bin/sh", "-c", _READ_OPTIONS, "options", folder, *submission.scripts]
    try:
        return run(context, node=controller, argv=argv).stdout.splitlines()
    except CommandError:
        return []
