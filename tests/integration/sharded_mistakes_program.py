"""A sharded job with a mistake in it, named by ``MISTAKE``. It must end before its first step, with one message."""

import os
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


def main() -> None:
    torch.set_num_threads(1)
    holdfast.init_process_group()
    rank = dist.get_rank()
    torch.manual_seed(rank if MISTAKE == "other seeds" else 1)
    model = nn.Linear(8, 8)
    if MISTAKE == "other order":
        for one in (0, 1) if rank else (1, 0):
            dist.new_group([one])
    tracker = Tracker(dist.new_group([0, 1])) if MISTAKE == "holder" else None
    if MISTAKE == "other seeds":
        fully_shard(model, mesh=dist.init_device_mesh("cpu", (2, 1), mesh_dim_names=("replicate", "shard")))
    else:
        fully_shard(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    run = holdfast.Run(model, optimizer, snapshot_every=0 if MISTAKE == "never" else 9 if MISTAKE == "long" else None)
    for step in run.steps(8):
        with step:
            loss = model(torch.ones(1, 8)).sum()
            loss.backward()
            step.update(loss)
    del tracker
    print("it has trained")


if __name__ == "__main__":
    main()
