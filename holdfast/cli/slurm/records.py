import re
import signal
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from holdfast.cli.slurm.reasons import waits
from holdfast_common import slurm_answers

SACCT_FIELDS = (
    "JobID", "JobIDRaw", "State", "ExitCode", "Submit", "Start", "End", "ElapsedRaw", "NodeList", "User", "WorkDir",
    "SubmitLine", "JobName",
)  # fmt: skip
DELIMITER = "\x1f"
SACCT = (
    "sacct", "--allusers", "--allocations", "--noheader", "--parsable2", f"--delimiter={DELIMITER}",
    f"--format={','.join(SACCT_FIELDS)}",
)  # fmt: skip
"""Its times are seconds since 1970 under SLURM_TIME_FORMAT=%s."""

_BEFORE_FREE_TEXT = SACCT_FIELDS.index("WorkDir")
"""Fields in which no line break can be."""
GOOD = "COMPLETED"
CANNOT_BEGIN = 53
"""In the place of a signal: slurmstepd could not set the job up (seen with 22.05, and in reports of all versions)."""
_SPARE = re.compile(r"holdfast-spare-(\d+)")
"""Name of a job that the launcher of another one submits for a spare node, and cancels."""
RESIZED = "RESIZING"
"""Of the records that a job leaves behind when it loses a node and goes on, as with --no-kill."""
_WHY = {
    "TIMEOUT": "exceeded its time limit",
    "NODE_FAIL": "lost a node",
    "OUT_OF_MEMORY": "ran out of memory",
    "DEADLINE": "missed its deadline",
    "BOOT_FAIL": "its nodes did not come up",
    "PREEMPTED": "was preempted by another job",
}


@dataclass(frozen=True, kw_only=True)
class JobRecord:
    job_id: str
    """A number, NUMBER_TASK of an array, or NUMBER+PART of a heterogeneous job."""
    number: str
    """That of this task or part alone, for which ``%j`` stands."""
    name: str
    user: str
    state: str
    """Of sacct(1), its first word."""
    by: str
    """User who cancelled it; empty if not cancelled."""
    exit_code: int
    exit_signal: int
    submitted_s: int | None
    started_s: int | None
    ended_s: int | None
    elapsed_s: int
    nodes: str
    work_dir: str
    submit_line: str
    """The words of the command, without the quotes that they had."""
    reason: str = ""
    """Reason to wait; empty if it runs, or without one."""

    def is_of(self, job: str) -> bool:
        """Return True for the job of this name, and for its tasks and parts."""
        return job in (self.job_id, self.number) or self.job_id.startswith((f"{job}_", f"{job}+"))

    @property
    def has_ended(self) -> bool:
        return self.state not in slurm_answers.WAITING

    @property
    def has_failed(self) -> bool:
        return self.has_ended and self.state != GOOD and not (self.spare_of and self.state == "CANCELLED")

    @property
    def why(self) -> str:
        """Reason of a failure or of waiting, in words; empty for a healthy job."""
        if self.spare_of and self.has_ended and not self.has_failed:
            way = "released by its launcher" if self.nodes or self.state != GOOD else "merged into it"
            return f"spare node of job {self.spare_of}, {way}"
        if not self.has_failed:
            return waits(self.reason, job=self.job_id) if self.reason else ""
        if self.state == "CANCELLED":
            return f"cancelled by {_name_of(self.by)}" if self.by else "cancelled"
        if self.state in _WHY:
            return _WHY[self.state]
        if self.exit_signal == CANNOT_BEGIN:
            return "could not start (0:53): its output file or working folder cannot be opened on the node"
        if not self.nodes:
            return "never ran: sbatch refused it and printed the reason"
        if self.exit_signal:
            return f"ended by signal {self.exit_signal} ({_signal_name(self.exit_signal)})"
        # A shell says so of a program of its own that a signal has ended.
        if self.exit_code > 128 and _signal_name(self.exit_code - 128):
            return f"exit code {self.exit_code}, as of a program ended by {_signal_name(self.exit_code - 128)}"
        return f"exit code {self.exit_code}"

    @property
    def spare_of(self) -> str:
        """Job whose launcher submitted this one for a spare node; empty for others."""
        found = _SPARE.fullmatch(self.name)
        return found[1] if found else ""

    def settled(self) -> "JobRecord":
        """
        Return a job for a spare node as its launcher has used it.

        One that the launcher ended is cancelled; Slurm records the SIGTERM as its failure. One that was merged into the
        launcher's job stays RESIZING in accounting, and ends at its time limit in squeue, a year ahead (22.05).
        """
        if self.spare_of and self.state == "FAILED" and signal.SIGTERM in (self.exit_code, self.exit_signal):
            return replace(self, state="CANCELLED")
        if self.spare_of and self.state == RESIZED and self.ended_s is not None:
            return replace(self, state=GOOD)
        if self.spare_of and self.state == GOOD and not self.nodes:
            return replace(self, ended_s=self.started_s, elapsed_s=0)
        return self


def parse_sacct(text: str) -> list[JobRecord]:
    """One record per job; a resized job has several in sacct's text, the newest last."""
    last = len(SACCT_FIELDS) - 1
    found: dict[str, JobRecord] = {}
    for one in (_record(text.split(DELIMITER, last)) for text in untorn(text, least=_BEFORE_FREE_TEXT, whole=last)):
        before = found.get(one.job_id)
        found[one.job_id] = one if before is None or before.state != RESIZED else _continued(before, one)
    return [one.settled() for one in found.values()]


def _continued(before: JobRecord, now: JobRecord) -> JobRecord:
    return replace(now, started_s=before.started_s, elapsed_s=before.elapsed_s + now.elapsed_s)


def untorn(text: str, *, least: int, whole: int) -> Iterator[str]:
    """
    Yield records, joining lines of a record whose name has a line break.

    Args:
        least: Delimiters before the first field that may have a line break.
        whole: Delimiters of a record.
    """
    pending = ""
    for line in text.split("\n"):
        if not pending and line.count(DELIMITER) < least:
            continue  # the rest of a name
        pending = f"{pending}\n{line}" if pending else line
        if pending.count(DELIMITER) >= whole:
            yield pending
            pending = ""


def newest_first(records: Iterable[JobRecord]) -> list[JobRecord]:
    """Running and pending jobs, then failed ones, then the others; each newest first."""
    return sorted(records, key=lambda one: (_rank(one), -(one.ended_s or 0), -_number(one.job_id)))


def _rank(record: JobRecord) -> int:
    return 0 if not record.has_ended else 1 if record.has_failed else 2


def outcome(states: Iterable[str]) -> str:
    """Failed state, COMPLETED, or empty while it runs. A cancelled task, such as an unused spare, is no failure."""
    names = {state.split()[0].rstrip("+") for state in states if state.strip()}
    bad = sorted(names - slurm_answers.WAITING - {GOOD, "CANCELLED"})
    if bad:
        return bad[0]
    if not names or names & slurm_answers.WAITING:
        return ""
    return GOOD if GOOD in names else "CANCELLED"


def _record(fields: Sequence[str]) -> JobRecord:
    row = dict(zip(SACCT_FIELDS, fields, strict=True))
    state, _, by = row["State"].partition(" by ")
    exit_code, exit_signal = slurm_answers.parse_exit(row["ExitCode"])
    return JobRecord(
        job_id=row["JobID"],
        number=row["JobIDRaw"] or row["JobID"],
        name=row["JobName"],
        user=row["User"],
        state=state.split()[0].rstrip("+") if state.strip() else "UNKNOWN",
        by=by,
        exit_code=exit_code,
        exit_signal=exit_signal,
        submitted_s=whole_number(row["Submit"]),
        started_s=whole_number(row["Start"]),
        ended_s=whole_number(row["End"]),
        elapsed_s=whole_number(row["ElapsedRaw"]) or 0,
        nodes="" if row["NodeList"].startswith("None") else row["NodeList"],
        work_dir=row["WorkDir"],
        submit_line=row["SubmitLine"],
    )


def whole_number(text: str) -> int | None:
    return int(text) if re.fullmatch(r"\d{1,18}", text, re.ASCII) else None


def _number(job_id: str) -> int:
    found = re.match(r"\d{1,18}", job_id, re.ASCII)
    return int(found[0]) if found else 0


def _name_of(user: str) -> str:
    return "root" if user == "0" else f"user {user}" if user.isdecimal() else user


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return ""
