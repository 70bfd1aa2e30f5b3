"""Use of a node: ranks of a known launcher, or other jobs of Slurm."""

import os
import re
from collections.abc import Sequence

from holdfast_agent.kernel_files import read_bytes
from holdfast_agent.launchers import JobReport

_STEP = re.compile(rb"slurmstepd: \[(\d+)")


def needed_by(jobs: Sequence[JobReport], *, proc: str = "/proc") -> str:
    """Reason; empty for an idle node. A launcher without ranks is a spare and does not count."""
    for job in jobs:
        if any(rank.rank >= 0 for rank in job.ranks):
            return f"job {job.job} has ranks on this node"
    waiting = {job.task for job in jobs}
    for task in _tasks(proc):
        if task not in waiting:
            return f"job {task or 'of Slurm'} runs here"
    return ""


def _tasks(proc: str) -> "list[str]":
    found = []
    for name in os.listdir(proc):  # noqa: PTH208 - hundreds of names
        if not name.isdigit() or read_bytes(f"{proc}/{name}/comm", most=16) != b"slurmstepd\n":
            continue
        line = read_bytes(f"{proc}/{name}/cmdline", most=256) or b""
        if b"infinity" not in line:  # which keeps Slurm's control group, with or without jobs
            step = _STEP.match(line)
            found.append(step[1].decode() if step else "")
    return found
