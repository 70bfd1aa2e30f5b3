"""Parsers of ``squeue`` and ``sinfo``. Pure."""

import re
from collections import Counter
from dataclasses import dataclass
from typing import Optional

SQUEUE = ("squeue", "--noheader", "--array", "--format", "%F|%K|%i|%T|%Q|%D|%P|%r|%k")
SINFO = ("sinfo", "--noheader", "--Node", "--format", "%R|%t")
_FREE = ("idle", "plnd", "comp")
"""Idle, idle and planned for a job that waits, and about to be idle."""
_COMMENT = re.compile(r"\belastic=(\d{1,5}):(\d{1,5})\b|\belastic=(\d{1,5}(?:,\d{1,5})*)")


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
        sizes: Sizes of an elastic job, by its comment.
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


def sizes_of(comment: str) -> "tuple[int, ...]":
    """
    Sizes in nodes of a comment ``elastic=2:5`` or ``elastic=2,3,5``; empty if there is none.

    A majority of the largest size is kept: fewer launchers have no quorum.
    """
    found = _COMMENT.search(comment)
    if not found:
        return ()
    if found[3]:
        sizes = sorted({int(one) for one in found[3].split(",")})
    else:
        sizes = [*range(int(found[1]), int(found[2]) + 1)]
    least = sizes[-1] // 2 + 1 if sizes else 0
    return tuple(size for size in sizes if size >= least)


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
                sizes=sizes_of(comment) if task.isdecimal() and nodes == "1" else (),
            )
        )
    return tuple(found)


def parse_free(text: str) -> "dict[str, int]":
    lines = (line.partition("|") for line in text.splitlines())
    return dict(Counter(partition for partition, _, state in lines if state in _FREE))
