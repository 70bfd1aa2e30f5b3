"""
What benchmarks/elastic.py runs, in one of three ways, each rank writing a line for each step.

``FOLDER elastic STEPS`` trains under holdfast-run and changes its size when it is asked to; ``FOLDER restart STEPS``
trains alone, from a checkpoint of torch.distributed.checkpoint where there is one, and writes one at its end;
``FOLDER cpu STEPS`` trains two models in turn, one with torch's reduce-scatter and one with sums in the order of
logical ranks.
"""

import json
import os
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard

WIDTH, LAYERS, VOCABULARY, CONTEXT, BATCH = 384, 6, 512, 32, 2
LOGICAL = 4
"""Parts of a batch."""


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm, self.up, self.down = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, values: Tensor) -> Tensor:
        result: Tensor = values + self.down(nn.functional.gelu(self.up(self.norm(values))))
        return result


def made() -> tuple[nn.Module, torch.optim.Optimizer]:
    torch.manual_seed(1)
    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    model = nn.Sequential(
        nn.Embedding(VOCABULARY, WIDTH), *(Block() for _ in range(LAYERS)), nn.Linear(WIDTH, VOCABULARY)
    )
    for module in (*model, model):
        fully_shard(module, mesh=mesh)
    return model, torch.optim.AdamW(model.parameters(), lr=1e-4)


def loss_of(model: nn.Module, step: int, part: int) -> Tensor:
    generator = torch.Generator().manual_seed(1000 * step + part)
    tokens = torch.randint(0, VOCABULARY, (BATCH, CONTEXT + 1), generator=generator)
    return nn.functional.cross_entropy(model(tokens[:, :-1]).flatten(0, 1), tokens[:, 1:].flatten())


def wrote(folder: Path, rank: int, **facts: float) -> None:
    with (folder / f"rank{rank}.jsonl").open("a") as file:
        file.write(json.dumps(facts) + "\n")


def elastic(folder: Path, steps: int) -> None:
    import holdfast_runtime as holdfast

    holdfast.init_process_group()
    model, optimizer = made()
    run = holdfast.Run(model, optimizer, elastic=LOGICAL, snapshot_every="never")
    for step in run.steps(steps):
        with step:
            began = time.time()
            for part in step.parts():
                step.backward(loss_of(model, step.number, part))
            step.clip(1.0)
            step.update()
            wrote(folder, run.rank, step=step.number, size=run.world_size, began=began, ended=time.time())


def restart(folder: Path, steps: int) -> None:
    import torch.distributed.checkpoint as torch_checkpoints
    from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict

    dcp: Any = torch_checkpoints
    dist.init_process_group("gloo")
    rank, size = dist.get_rank(), dist.get_world_size()
    model, optimizer = made()
    checkpoint, first = str(folder / "checkpoint"), 0
    if (folder / "checkpoint" / ".metadata").exists():
        weights, moments = get_state_dict(model, optimizer)
        tree: Any = {"model": weights, "optimizer": moments, "step": 0}
        dcp.load(tree, checkpoint_id=checkpoint)
        set_state_dict(model, optimizer, model_state_dict=tree["model"], optim_state_dict=tree["optimizer"])
        first = tree["step"]
    for step in range(first, first + steps):
        began = time.time()
        for part in range(rank, LOGICAL, size):
            loss_of(model, step, part).backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        optimizer.zero_grad()
        wrote(folder, rank, step=step, size=size, began=began, ended=time.time())
    weights, moments = get_state_dict(model, optimizer)
    dcp.save({"model": weights, "optimizer": moments, "step": step + 1}, checkpoint_id=checkpoint)
    dist.barrier()
    os._exit(0)


def cpu(folder: Path, steps: int) -> None:
    """Two models in turn."""
    from holdfast_runtime.elastic import Rounds
    from holdfast_runtime.groups import ordered

    dist.init_process_group("gloo")
    rank, size = dist.get_rank(), dist.get_world_size()
    rounds = Rounds(size)
    (plain, plain_optimizer), (model, optimizer) = made(), made()
    ordered(model, rounds)
    for step in range(steps):
        turns = [("torch", plain, plain_optimizer), ("ordered", model, optimizer)]
        for name, each, its in turns if step % 2 else reversed(turns):
            rounds.begin(rank=rank, size=size)
            dist.barrier()
            began = time.process_time()
            loss_of(each, step, rank).backward()  # type: ignore[no-untyped-call]
            its.step()
            its.zero_grad()
            dist.barrier()
            wrote(folder, rank, **{"step": step, name: time.process_time() - began})
    os._exit(0)


if __name__ == "__main__":
    torch.set_num_threads(1)
    warnings.filterwarnings("ignore")
    {"elastic": elastic, "restart": restart, "cpu": cpu}[sys.argv[2]](Path(sys.argv[1]), int(sys.argv[3]))
