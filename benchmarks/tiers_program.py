"""What ``tiers.py`` kills: a script as its user wrote it for torchrun. Argument: a folder."""

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
from torch.nn.parallel import DistributedDataParallel

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


def train(model: nn.Module, folder: Path) -> None:
    dist.init_process_group("gloo")
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    trained = DistributedDataParallel(model)
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


def main() -> None:
    torch.set_num_threads(1)
    torch.manual_seed(1)
    model = nn.Sequential(*(nn.Linear(WIDTH, WIDTH) for _ in range(LAYERS)))
    train(model, Path(sys.argv[1]))


if __name__ == "__main__":
    main()
