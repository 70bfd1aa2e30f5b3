"""What ``tiers.py`` kills: one model four ways, each as a user of that tier writes it. Arguments: the way, a folder."""

import os
import sys
import time
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict
from torch.distributed.checkpoint.state_dict_loader import load
from torch.distributed.checkpoint.state_dict_saver import save
from torch.distributed.fsdp import fully_shard
from torch.nn.parallel import DistributedDataParallel

import holdfast_runtime as holdfast

WIDTH, LAYERS, STEPS, EVERY = 384, 6, 100_000, 10
"""10.6 MB of state; a checkpoint each ten updates, as short as anybody would."""


class Log:
    def __init__(self, folder: Path) -> None:
        self.file = (folder / f"rank{dist.get_rank()}.log").open("a")

    def step(self, number: int) -> None:
        self.file.write(f"{os.getpid()} {number} {time.time()}\n")
        self.file.flush()


def loss_of(model: nn.Module, step: int, rank: int) -> Tensor:
    inputs = torch.randn(16, WIDTH, generator=torch.Generator().manual_seed(1000 * step + rank))
    loss: Tensor = model(inputs).square().mean()
    return loss


def plain(model: nn.Module, folder: Path, *, sharded: bool) -> None:
    dist.init_process_group("gloo")
    if sharded:
        fully_shard(model)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    trained = model if sharded else DistributedDataParallel(model)
    first, newest = 0, folder / "newest"
    if newest.exists():
        first = int(newest.read_text())
        weights, moments = get_state_dict(model, optimizer)
        state: dict[str, Any] = {"model": weights, "optimizer": moments}
        load(state, checkpoint_id=folder / f"step-{first}")
        set_state_dict(model, optimizer, model_state_dict=state["model"], optim_state_dict=state["optimizer"])
    log = Log(folder)
    for number in range(first, STEPS):
        optimizer.zero_grad()
        loss_of(trained, number, dist.get_rank()).backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        log.step(number)
        if (number + 1) % EVERY == 0:
            weights, moments = get_state_dict(model, optimizer)
            save({"model": weights, "optimizer": moments}, checkpoint_id=folder / f"step-{number + 1}")
            if dist.get_rank() == 0:
                (folder / "next").write_text(str(number + 1))
                (folder / "next").replace(newest)


def ours(model: nn.Module, folder: Path, *, sharded: bool) -> None:
    if sharded:
        holdfast.init_process_group()
        fully_shard(model)
    run = holdfast.Run(model, torch.optim.AdamW(model.parameters(), lr=1e-4))
    log = Log(folder)
    for step in run.steps(STEPS):
        with step:
            loss = loss_of(model, step.number, run.rank)
            loss.backward()  # type: ignore[no-untyped-call]
            step.update(loss)
            log.step(step.number)


def main() -> None:
    way, folder = sys.argv[1], Path(sys.argv[2])
    torch.set_num_threads(1)
    torch.manual_seed(1)
    model = nn.Sequential(*(nn.Linear(WIDTH, WIDTH) for _ in range(LAYERS)))
    (plain if way.startswith("plain") else ours)(model, folder, sharded=way.endswith("sharded"))


if __name__ == "__main__":
    main()
