"""Parsers of ``squeue`` and ``sinfo``. Pure."""

from collections import Counter
from dataclasses import dataclass
from typing import Optional

from holdfast_common import elastic_nodes

SQUEUE = ("squeue", "--noheader", "--array", "--format", "%F|%K|%i|%T|%Q|%D|%P|%r|%k")
SINFO = ("sinfo", "--noheader", "--Node", "--format", "%R|%t")
_FREE = ("idle", "plnd", "comp")
"""Idle, idle and planned for a job that waits, and about to be idle."""


@dataclass(frozen=True)
class QueuedJob:
    """
    A job, or one task of a job array.

    Args:
        array: Number of the array, or of the job.
        task: In the array; None for a single job.
        name: As Slurm's commands take it.
        state: RUNNING, PENDING, COMPLETING ...
        priority: Higher starts earlier.
        nodes: Allocated or requested.
        partition: Several, with commas, while pending.
        sizes: Of an elastic job, in nodes.
    """

    array: str
    task: Optional[int]
    name: str
    state: str
    priority: int = 0
    nodes: int = 1
    partition: str = ""
    reason: str = ""
    sizes: "tuple[int, ...]" = ()


def parse_queue(text: str) -> "tuple[QueuedJob, ...]":
    """Return all jobs; invalid lines are skipped."""
    found = []
    for line in text.splitlines():
        fields = line.split("|", 8)
        if len(fields) != 9 or not fields[4].isdecimal() or not fields[5].isdecimal():
            continue
        array, task, name, state, priority, nodes, partition, reason, comment = fields
        found.append(
            QueuedJob(
                array=array,
                task=int(task) if task.isdecimal() else None,
                name=name,
                state=state,
                priority=int(priority),
                nodes=int(nodes),
                partition=partition,
                reason=reason,
                sizes=elastic_nodes(comment) if task.isdecimal() and nodes == "1" else (),
            )
        )
    return tuple(found)


def parse_free(text: str) -> "dict[str, int]":
    lines = (line.partition("|") for line in text.splitlines())
    return dict(Counter(partition for partition, _, state in lines if state in _FREE))
