"""
Training programs that cannot go on, each in its way; HOLDFAST_TEST_WAY names it.

Arguments as those of the recovery tests' program: folder for the results, updates to make, seconds of sleep per step.
"""

import os
import sys
import time
from pathlib import Path
from typing import Any

import torch
from torch import nn

import holdfast_runtime as holdfast

WAY = os.environ["HOLDFAST_TEST_WAY"]
AT = 3
"""The step in which it happens."""


class Refuses:
    """State of a script that cannot be taken over from another process."""

    def state_dict(self) -> dict[str, Any]:
        return {"count": 1}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        raise RuntimeError(f"this state cannot be loaded: {state}")


def main() -> None:
    total, pause_s = int(sys.argv[2]), float(sys.argv[3])
    torch.set_num_threads(1)
    torch.manual_seed(0)
    model = nn.Sequential(nn.Embedding(8, 4), nn.Linear(4, 1))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    run = holdfast.Run(model, optimizer, state={"refuses": Refuses()} if WAY == "load" else {})
    if WAY == "sharded late":
        shard(model, run.world_size)
    for step in run.steps(total):
        with step:
            time.sleep(pause_s)
            tokens = torch.full((2,), step.number % 8)
            if step.number == AT:
                misbehave(tokens, run)
            loss = model(tokens).square().mean()
            loss.backward()
            step.update(loss)
            if step.number == AT and WAY == "after the update" and run.rank == 1:
                raise OSError("the script's log cannot be written")
            if WAY == "after every update" and run.rank == 1:
                raise OSError("the script's log cannot be written")
            if WAY == "an exit at every step" and run.rank == 1:
                os._exit(3)
            (Path(sys.argv[1]) / f"at{run.rank}").write_text(str(step.number))


def misbehave(tokens: torch.Tensor, run: holdfast.Run) -> None:
    if WAY == "all raise":
        raise ValueError("every rank raises this")
    if WAY == "one raises" and run.rank == 1:
        raise ValueError("rank 1 raises this")
    if WAY == "beyond the vocabulary":
        tokens[0] = 8
    if WAY == "connections break" and run.rank == 1 and run._member is not None:
        run._member._group.release()


def shard(model: nn.Module, ranks: int) -> None:
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    fully_shard(model, mesh=init_device_mesh("cpu", (ranks,)))


if __name__ == "__main__":
    main()
