"""
Training that stands still at step 20 in a way of its choice, in rank 1 alone.

Arguments: FAULT, one of stop, loop, loader, left-out, evaluation and none; "torchrun" for a job without our launcher.
"""

import os
import signal
import sys
import time
from collections.abc import Iterator

import torch
import torch.distributed as dist
from torch.utils.data import DataLoader, IterableDataset

AT = 20
fault, plain = sys.argv[1], "torchrun" in sys.argv
rank = int(os.environ.get("RANK", "0"))


def spin() -> None:
    while True:
        pass


def evaluate() -> None:
    time.sleep(90)


class Rows(IterableDataset[torch.Tensor]):
    """Rows, of which the worker of rank 1 gives no more from a place on."""

    def __iter__(self) -> Iterator[torch.Tensor]:
        for place in range(1 << 40):
            if fault == "loader" and rank == 1 and place >= 8 * AT:
                print("rank 1 begins: loader", flush=True)
                time.sleep(3600)
            yield torch.full((4,), place / 100.0)


def breaks(step: int) -> bool:
    if rank != 1 or step != AT or fault in ("none", "loader", "evaluation"):
        return False
    print(f"rank 1 begins: {fault}", flush=True)
    if fault == "stop":
        os.kill(os.getpid(), signal.SIGSTOP)
    if fault == "loop":
        spin()
    return fault == "left-out"


torch.set_num_threads(1)
torch.manual_seed(0)
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)


def train_with_torchrun() -> None:
    dist.init_process_group("gloo")
    rows = iter(DataLoader(Rows(), batch_size=8, num_workers=1))
    for step in range(1 << 30):
        loss = model(next(rows)).square().mean()
        if breaks(step):
            time.sleep(3600)
        loss.backward()
        for one in model.parameters():
            dist.all_reduce(one.grad)
        optimizer.step()
        time.sleep(0.1)
        if rank == 0:
            print(f"step {step} loss {loss.item():.4f}", flush=True)


def train() -> None:
    import holdfast_runtime as holdfast

    global rank
    run = holdfast.Run(model, optimizer)
    rank = run.rank
    rows = iter(DataLoader(Rows(), batch_size=8, num_workers=1))
    for step in run.steps(1 << 30):
        with step:
            loss = model(next(rows)).square().mean()
            if fault == "left-out":
                both = torch.ones(1)
                if breaks(step.number):
                    time.sleep(3600)
                dist.all_reduce(both)
            else:
                breaks(step.number)
            loss.backward()
            step.update(loss)
        if step.done and fault == "evaluation" and rank == 0 and step.number == AT:
            print("rank 0 begins: evaluation", flush=True)
            evaluate()
        time.sleep(0.1)


if plain:
    train_with_torchrun()
else:
    train()
