"""Evidence of jobs as collectors report it, and its findings."""

from collections.abc import Mapping
from typing import Any

from holdfast.cli.diagnosis import Diagnosis, Evidence, Frame, Pace, PendingJob, Process, Rank, diagnose

NOW_S = 1_800_000_000.0
DEADLINES = {"frozen": 10.0, "silence": 120.0, "progress": 600.0}
PACE = Pace(step=40, usual_s=0.5, longest_s=2.0, age_s=45.0)
SPIN = (Frame(function="spin", file="/fsx/jobs/7/train.py", line=31),)
REDUCE = (
    Frame(
        function="all_reduce",
        file="/opt/venv/lib/python3.12/site-packages/torch/distributed/distributed_c10d.py",
        line=3,
    ),
    Frame(function="main", file="/fsx/jobs/7/train.py", line=22),
)
VOTE = (
    Frame(function="wait", file="/opt/venv/lib/python3.12/site-packages/holdfast_runtime/groups/waiting.py", line=9),
    Frame(function="main", file="/fsx/jobs/7/train.py", line=40),
)


def process(pid: int = 100, **values: Any) -> Process:
    return Process(**{"pid": pid, "name": "python", "states": "SSS", "waits_in": "futex_wait_queue", **values})


def rank(number: int, *, own: Mapping[str, Any] | None = None, **values: Any) -> Rank:
    given = {"phase": "vote", "step": 40, "silent_s": 44.0, "stack": VOTE, **values}
    return Rank(rank=number, node=f"ip-10-1-0-1{number}", process=process(100 + number, **(own or {})), **given)


def found(*ranks: Rank, **values: Any) -> Diagnosis:
    given = {"pace": PACE, "deadlines": DEADLINES, "state": "RUNNING", "world_size": len(ranks) or None, **values}
    return diagnose(Evidence(job="7", ranks=ranks, **given), now_s=NOW_S)


def pending(name: str, words: str, **values: Any) -> Diagnosis:
    return diagnose(
        Evidence(job="7", state="PENDING", pending=[PendingJob(name=name, words=words, **values)]), now_s=NOW_S
    )


def plain(number: int, *, own: Mapping[str, Any] | None = None, **values: Any) -> Rank:
    """Of torchrun: no launcher, and no py-spy on its node."""
    no_stack = "py-spy is not installed on this node"
    return Rank(
        rank=number, node=f"n{number}", process=process(100 + number, **(own or {})), no_stack=no_stack, **values
    )
