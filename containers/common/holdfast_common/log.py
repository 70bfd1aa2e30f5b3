"""Event log writer."""

import os
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Optional, Union

from holdfast_common.schema import VERSION, Detail, check_fields, to_line

_JOBS = "jobs"
_MODE, _JOBS_MODE = 0o640, 0o666
"""Mode of a new log; the log of jobs is writable by all users."""


class EventLog:
    """
    File that events are appended to, by any number of processes at once.

    Each event is one ``write`` with O_APPEND: lines of concurrent writers never mix.

    Args:
        path: None: discard events, for a program run outside of a cluster.
        job: Slurm job id, or name of a Kubernetes job.
        clock: UTC nanoseconds.
    """

    def __init__(
        self,
        *,
        path: Optional[Path],
        source: str,
        cluster: str = "",
        node: str = "",
        job: str = "",
        clock: Callable[[], int] = time.time_ns,
    ) -> None:
        self.path = path
        self._clock = clock
        self._fields = {"version": VERSION, "source": source, "cluster": cluster, "node": node, "job": job}

    @classmethod
    def from_environment(cls, *, source: str, environment: Mapping[str, str] = os.environ) -> "EventLog":
        """Log of this node, by the job environment; outside of a cluster, one that discards events."""
        path = environment.get("HOLDFAST_EVENTS")
        return cls(
            path=Path(path) if path else None,
            source=source,
            cluster=environment.get("HOLDFAST_CLUSTER", ""),
            node=instance_id(environment),
            job=job_name(environment),
        )

    def write(
        self,
        *,
        kind: str,
        cluster: Optional[str] = None,
        node: Optional[str] = None,
        job: Optional[str] = None,
        fault: str = "",
        evidence: str = "",
        action: str = "",
        duration_s: Optional[float] = None,
        detail: Optional[Detail] = None,
        time_ns: Optional[int] = None,
    ) -> None:
        """Append one event; missing fields come from the log. Raises EventError, or OSError if it cannot be written."""
        given = {"cluster": cluster, "node": node, "job": job}
        values = {
            **self._fields,
            **{name: value for name, value in given.items() if value is not None},
            "time_ns": self._clock() if time_ns is None else time_ns,
            "kind": kind,
            "fault": fault,
            "evidence": evidence,
            "action": action,
            "duration_s": duration_s,
            "detail": {} if detail is None else detail,
        }
        check_fields(values)
        if self.path is not None:
            mode = _JOBS_MODE if self._fields["source"] == "job" else _MODE
            _append(self.path, to_line(values).encode() + b"\n", mode=mode)


def instance_id(environment: Mapping[str, str]) -> str:
    """Return the instance id of this node: HOLDFAST_INSTANCE_ID, which in a pod may be the node's name."""
    return environment.get("HOLDFAST_INSTANCE_ID", "").removeprefix("hyperpod-")


def job_name(environment: Mapping[str, str]) -> str:
    """Return the name of a process's job: of Slurm's array or job, or of a Kubernetes job; empty for none."""
    names = ("SLURM_ARRAY_JOB_ID", "SLURM_JOB_ID", "HOLDFAST_JOB")
    return next((environment[name] for name in names if environment.get(name)), "")


def _append(path: Path, line: bytes, *, mode: int) -> None:
    flags = os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC
    try:
        descriptor = os.open(path, flags)
    except FileNotFoundError:
        # O_CREAT only now: the kernel refuses it on another user's file in a world-writable sticky directory.
        descriptor = os.open(path, flags | os.O_CREAT, mode)
    try:
        written = os.write(descriptor, line)
    finally:
        os.close(descriptor)
    if written != len(line):
        raise OSError(f"event only partly written to {path}: {written} of {len(line)} bytes; is the disk full?")


def events_log_group(cluster_name: str) -> str:
    return f"/holdfast/{cluster_name}/events"


def log_of_jobs(events: "Union[str, Path]") -> Path:
    """Path of the log of jobs, beside that of the agent. Pods mount its folder, which holds nothing else."""
    path = Path(events)
    return path.parent / _JOBS / path.name


def stream_of_jobs(node: str) -> str:
    return f"{node}/{_JOBS}"


_DROPPED = "[holdfast] older events of this stream were dropped: "


def dropped_event(count: int) -> str:
    """Message of the event in place of ``count`` others, in a log group that does not keep all."""
    return f"{_DROPPED}{count}"


def events_counted(message: str) -> int:
    """Number of events that a message of a stream stands for; a shipper counts them to know where to continue."""
    number = message[len(_DROPPED) :]
    return int(number) if message.startswith(_DROPPED) and number.isdecimal() and len(number) < 20 else 1
