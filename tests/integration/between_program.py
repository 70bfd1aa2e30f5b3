"""
Training with a validation of all ranks after every fourth step, and a schedule that follows from its loss.

Arguments: folder, then what ``killing`` adds. PLACE and AT are where rank 1 kills itself once: in "validation",
"behind" its collective, in a "step", "outside" of both, or at the "end". EPOCHS: loops. LAYOUT: "replicas" or
"sharded".
"""

import hashlib
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.fsdp import fully_shard

import holdfast_runtime as holdfast

STEPS, EVERY = 16, 4
folder, place, at = Path(sys.argv[1]), os.environ.get("PLACE", ""), int(os.environ.get("AT", "8"))
epochs, sharded = int(os.environ.get("EPOCHS", "1")), os.environ.get("LAYOUT") == "sharded"


class Best:
    def __init__(self) -> None:
        self.loss, self.validations = float("inf"), 0

    def state_dict(self) -> dict[str, Any]:
        return vars(self).copy()

    def load_state_dict(self, state: dict[str, Any]) -> None:
        vars(self).update(state)


torch.set_num_threads(1)
if sharded:
    holdfast.init_process_group()
torch.manual_seed(0)
model = nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.Dropout(0.1), nn.Linear(16, 8))
if sharded:
    for part in (model[0], model[3], model):
        fully_shard(part)
optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
plateau = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, patience=0, factor=0.5, threshold=0.2)
best = Best()
stage = "first"
options: dict[str, Any] = {"snapshot_every": 1} if sharded else {}
run = holdfast.Run(model, optimizer, state={"best": best, "plateau": plateau}, **options)


def die(here: str, finished: int) -> None:
    flag = folder / "died"
    if (here, finished, run.rank) == (place, at, 1) and not flag.exists():
        flag.touch()
        os.kill(os.getpid(), signal.SIGKILL)


def validate(finished: int) -> None:
    if finished % EVERY:
        return
    model.eval()
    best.validations += 1
    with torch.no_grad():
        total = sum((model(torch.full((2, 8), 0.1 * i)) - 1).square().mean() * torch.rand(()) for i in range(4))
    assert isinstance(total, torch.Tensor)
    die("validation", finished)
    dist.all_reduce(total)
    die("behind", finished)
    model.train()
    best.loss = min(best.loss, float(total))
    plateau.step(float(total))
    if run.is_logger:
        (folder / f"validation{finished:02}").write_text(f"{float(total)} {best.validations}")


for epoch in range(epochs):
    for step in run.steps(STEPS * (epoch + 1) // epochs, between=validate):
        with step:
            inputs = torch.randn(4, 8, generator=torch.Generator().manual_seed(100 * step.number + run.data_rank))
            loss = (model(inputs) - inputs).square().mean()
            loss.backward()
            stage = "second" if step.number == 6 else stage
            die("step", step.number)
            step.update(loss)
        if place == "outside" and step.number + 1 == at:
            time.sleep(0.2 * run.rank)
            die("outside", step.number + 1)
            dist.all_reduce(torch.ones(1))
    best.validations += 100
if place == "end":
    time.sleep(0.2 * run.rank)
    die("end", at)
    dist.all_reduce(torch.ones(1))
tensors = [p.to_local() if sharded else p for p in model.parameters()]  # type: ignore[operator]
digest = hashlib.sha256(b"".join(tensor.detach().numpy().tobytes() for tensor in tensors)).hexdigest()[:12]
rate = optimizer.param_groups[0]["lr"]
(folder / f"result{run.rank}").write_text(f"{digest} {best.loss} {best.validations} {rate}")
