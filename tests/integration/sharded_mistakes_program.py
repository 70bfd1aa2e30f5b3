"""
A sharded job with a mistake in it, named by ``MISTAKE``. It must end before its first step, with one message.

"build once" and "build always" are of newcomers alone: their model cannot be made.
"""

import os
import sys
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.fsdp import fully_shard

import holdfast_runtime as holdfast

MISTAKE = os.environ["MISTAKE"]


class Tracker:
    """Of the script."""

    def __init__(self, line: Any) -> None:
        self.line = line


def fail_to_build(rank: int) -> None:
    """What only a newcomer does: it finds that its rank's model was made before."""
    made, failed = (Path(sys.argv[1]) / f"{rank}.{what}" for what in ("made", "failed"))
    if made.exists() and (MISTAKE == "build always" or not failed.exists()):
        failed.touch()
        raise FileNotFoundError("the weights are not there")
    made.touch()


def main() -> None:
    torch.set_num_threads(1)
    if MISTAKE == "early":
        dist.init_process_group("gloo")
    if MISTAKE in ("not ours", "replicas with a group"):
        dist.init_process_group("gloo")
    else:
        holdfast.init_process_group()
    rank = dist.get_rank()
    torch.manual_seed(rank if MISTAKE == "other seeds" else 1)
    if MISTAKE.startswith("build"):
        fail_to_build(rank)
    model = nn.Linear(8, 8)
    if MISTAKE == "other order":
        for one in (0, 1) if rank else (1, 0):
            dist.new_group([one])
    tracker = Tracker(dist.new_group([0, 1])) if MISTAKE == "holder" else None
    if MISTAKE == "other seeds":
        fully_shard(model, mesh=dist.init_device_mesh("cpu", (2, 1), mesh_dim_names=("replicate", "shard")))
    elif MISTAKE != "replicas with a group":
        fully_shard(model)
    reference = nn.Bilinear(2, 2, 2) if MISTAKE == "reference" else None
    if reference is not None:
        fully_shard(reference)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    run = holdfast.Run(model, optimizer, snapshot_every=0 if MISTAKE == "never" else 9 if MISTAKE == "long" else None)
    if MISTAKE == "second":
        holdfast.Run(nn.Linear(8, 8), torch.optim.SGD(model.parameters(), lr=0.1))
    for step in run.steps(8):
        with step:
            loss = model(torch.ones(1, 8)).sum()
            loss.backward()
            step.update(loss)
    del tracker, reference
    print("it has trained")


if __name__ == "__main__":
    main()
