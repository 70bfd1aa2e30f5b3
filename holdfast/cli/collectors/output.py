"""End of a job's output, and its first explicit error."""

import time
from collections.abc import Sequence

from holdfast.cli.deployed import Context, controller_hostname, run
from holdfast.cli.diagnosis import FailureSeen, Output
from holdfast.cli.slurm import first_failure, named_error
from holdfast.cli.terminal import CommandError

MOST_FILES = 6
_READ = """[ -r "$1" ] || exit 3
stat -c %Y -- "$1"
if [ "$(stat -c %s -- "$1")" -le 1048576 ]; then exec cat -- "$1"; fi
head -c 524288 -- "$1"; echo; tail -c 524288 -- "$1"
"""
KEPT = 20


def read_end(
    context: Context, *, files: Sequence[tuple[str, str]], began_s: float
) -> tuple[Output, FailureSeen | None]:
    """
    Return the end of the output and the first error.

    Args:
        files: Path and host of each file.
        began_s: Start of the job, in seconds since 1970; 0 if unknown.
    """
    last: list[str] = []
    written_s: float | None = None
    failure: FailureSeen | None = None
    every_s: float | None = None
    for path, at in files[:MOST_FILES]:
        answer = _answer(context, path=path, hosts=(controller_hostname(context), at))
        if answer is None:
            continue
        stamp, _, text = answer.partition("\n")
        lines = [line for line in text.splitlines() if line.strip()]
        if stamp.isdecimal() and (written_s is None or int(stamp) >= written_s) and lines:
            written_s, last = float(stamp), lines[-KEPT:]
            every_s = interval_s(len(lines), began_s=began_s, written_s=written_s)
        failure = failure or failure_in(lines, host=at)
    age_s = None if written_s is None else max(0.0, time.time() - written_s)
    return Output(lines=last, age_s=age_s, every_s=every_s), failure


def interval_s(lines: int, *, began_s: float, written_s: float) -> float | None:
    """Mean seconds from one line to the next; None if unknown, or if all came within a second, which files resolve."""
    return (written_s - began_s) / lines if began_s and written_s - began_s > 1 else None


def failure_in(lines: Sequence[str], *, host: str = "") -> FailureSeen | None:
    """First traceback, or else the first line that names an error; None without one."""
    found = first_failure(lines, host="")
    if (found is None or found.is_of_torchrun) and (line := named_error(lines)):
        return FailureSeen(text=line)
    if found is None:
        return None
    return FailureSeen(text=found.error, rank=found.rank, node=found.host or host, lines=found.lines)


def _answer(context: Context, *, path: str, hosts: Sequence[str]) -> str | None:
    for host in dict.fromkeys(hosts):
        if not host:
            continue
        try:
            answer = run(context, node=host, argv=["/bin/sh", "-c", _READ, "read", path], timeout_s=5.0)
        except CommandError:
            continue
        if not answer.returncode:
            return answer.stdout
    return None
