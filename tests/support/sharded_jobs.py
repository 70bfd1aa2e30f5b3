"""Sharded jobs to be killed: the program of ``sharded_program`` in a layout, under ``holdfast-run``."""

import math
import re
from collections.abc import Mapping
from typing import Any

from killing import PATIENT, ROOT, Job

PROGRAM = ROOT / "tests" / "integration" / "sharded_program.py"
PRELOADED = (
    "torch,torch._dynamo,torch.distributed.fsdp,torch.distributed.tensor.parallel,torch.distributed.pipelining,"
    "torch.distributed._composable.replicate_with_fsdp"
)
"""Whoever makes a model in such a layout imports these; in the process that forks it is done once."""


def sharded(
    layout: str,
    *,
    steps: int,
    every: int | None = None,
    nodes: int = 1,
    spares: int = 1,
    faults: tuple[Mapping[str, Any], ...] = (),
    environment: Mapping[str, str] | None = None,
    **more: Any,
) -> Job:
    """
    A job.

    Args:
        layout: Names and sizes of the mesh's dimensions, such as "replicate2 shard2".
        every: Updates from one snapshot to the next. Default: by cost, where a part is in one place only.
        nodes: That the ranks are on; spare ones are more.
    """
    own = {"LAYOUT": layout, "SNAPSHOT_EVERY": str(every) if every is not None else "", **(environment or {})}
    ranks = world_of(layout) // nodes
    shape = {"deadlines": PATIENT, "arguments": ("--max-restarts", "40"), "program": PROGRAM, **more}
    return Job(
        steps=steps,
        nodes=nodes + more.get("spare_nodes", 0),
        ranks=ranks,
        spares=spares,
        faults=faults,
        torch=PRELOADED,
        environment=own,
        **shape,
    )


def world_of(layout: str) -> int:
    """Ranks of a layout."""
    return math.prod(int(size) for size in re.findall(r"\d+", layout))
