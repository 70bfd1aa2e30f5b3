"""
Jobs of Slurm's controller that accounting does not have yet. Pure.

slurmctld sends its records to slurmdbd in turns, and one for all pending tasks of an array.
"""

import dataclasses
import re
from collections.abc import Sequence

from holdfast.cli.slurm.records import DELIMITER, JobRecord, untorn, whole_number
from holdfast_common import slurm_answers

SQUEUE_FIELDS = (
    "JobArrayID", "JobID", "State",
    "exit_code", "SubmitTime", "StartTime", "EndTime", "TimeUsed", "NodeList", "UserName",
    "Reason", "WorkDir", "Command",
    "Name",
)  # fmt: skip
SQUEUE = (
    "squeue", "--noheader", "--all", "--array", "--states=all",
    "--Format=" + ",".join(f"{name}:{DELIMITER}" for name in SQUEUE_FIELDS),
)  # fmt: skip
"""Its times are seconds since 1970 under SLURM_TIME_FORMAT=%s."""

_BEFORE_FREE_TEXT = SQUEUE_FIELDS.index("WorkDir")
_CLOCK = re.compile(r"(?:(\d{1,6})-)?(?:(\d{1,2}):)?(\d{1,4}):(\d{2})", re.ASCII)


def parse_squeue(text: str) -> list[JobRecord]:
    """Parse squeue's text, in which the delimiter ends each field, the last one too."""
    count = len(SQUEUE_FIELDS)
    return [
        _record(one.split(DELIMITER)[:count]).settled() for one in untorn(text, least=_BEFORE_FREE_TEXT, whole=count)
    ]


def merged(remembered: Sequence[JobRecord], live: Sequence[JobRecord]) -> list[JobRecord]:
    """One record per job and task: accounting's after the end, else the controller's, which also has requeued jobs."""
    queued = {one.job_id: one for one in live}
    parts = {one.number: one.job_id for one in live if "+" in one.job_id}
    arrays = {_number_of(one) for one in live if "_" in one.job_id}
    found = []
    for one in remembered:
        # Of a short heterogeneous job accounting has the end before it knows that it is one.
        now = queued.pop(one.job_id, None) or queued.pop(parts.get(one.job_id, ""), None)
        if now is None:
            # Tasks that wait are one record in accounting; one of which it knows only the end has the array's number.
            if re.fullmatch(r"\d+_\d+", one.job_id) or _number_of(one) not in arrays:
                found.append(one)
        else:
            found.append(_completed(one, now) if one.has_ended and now.has_ended else now)
    return [*found, *queued.values()]


def _completed(remembered: JobRecord, live: JobRecord) -> JobRecord:
    return dataclasses.replace(
        remembered,
        job_id=live.job_id,
        name=live.name,
        user=live.user,
        work_dir=live.work_dir,
        submitted_s=live.submitted_s,
    )


def _number_of(record: JobRecord) -> str:
    return record.job_id.partition("_")[0]


def _record(fields: Sequence[str]) -> JobRecord:
    row = dict(zip(SQUEUE_FIELDS, fields, strict=True))
    state = row["State"].strip() or "UNKNOWN"
    exit_code, exit_signal = slurm_answers.parse_exit(row["exit_code"])
    return JobRecord(
        job_id=row["JobArrayID"].strip(),
        number=row["JobID"].strip(),
        name=row["Name"],
        user=row["UserName"],
        state=state,
        by="",
        exit_code=exit_code,
        exit_signal=exit_signal,
        submitted_s=whole_number(row["SubmitTime"]),
        # What waits or runs has an expected start or end here.
        started_s=None if state in slurm_answers.BEFORE_START else whole_number(row["StartTime"]),
        ended_s=None if state in slurm_answers.WAITING else whole_number(row["EndTime"]),
        elapsed_s=_seconds(row["TimeUsed"]),
        nodes=row["NodeList"],
        work_dir=row["WorkDir"],
        submit_line=f"sbatch {row['Command']}" if row["Command"] not in ("", "(null)") else "",
        reason=row["Reason"] if state in slurm_answers.BEFORE_START and row["Reason"] != "None" else "",
    )


def _seconds(clock: str) -> int:
    found = _CLOCK.fullmatch(clock.strip())
    if found is None:
        return 0
    days, hours, minutes, seconds = (int(part or 0) for part in found.groups())
    return ((days * 24 + hours) * 60 + minutes) * 60 + seconds
