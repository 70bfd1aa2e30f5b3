"""
Epochs, each a loop over ``run.steps`` with a validation after it.

Arguments: folder, then what ``killing`` adds. PLACE is where rank 1 kills itself once: "between" two epochs, or at the
"end". PLAIN=1 has a collective of torch in the validation.
"""

import hashlib
import os
import signal
import sys
import time
from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn

import holdfast_runtime as holdfast

EPOCHS, STEPS = 3, 4
folder, place = Path(sys.argv[1]), os.environ.get("PLACE", "")
torch.set_num_threads(1)
torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 8), nn.GELU(), nn.Linear(8, 1))
optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1, gamma=0.5)
run = holdfast.Run(model, optimizer)


def die() -> None:
    flag = folder / "died"
    if run.rank == 1 and not flag.exists():
        flag.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    time.sleep(0.5)


for epoch in range(EPOCHS):
    for step in run.steps((epoch + 1) * STEPS):
        with step:
            inputs = torch.randn(8, 4, generator=torch.Generator().manual_seed(100 * step.number + run.rank))
            loss = model(inputs).square().mean()
            loss.backward()
            step.update(loss)
    scheduler.step()
    with torch.no_grad():
        validation = model(torch.full((2, 4), float(run.rank))).square().mean()
    if place == "between" and epoch == 1:
        die()
    elif os.environ.get("PLAIN"):
        dist.all_reduce(validation)
    else:
        run.all_reduce_mean(validation)
if place == "end":
    die()
state = [*model.parameters(), *(value for each in optimizer.state.values() for value in each.values())]
digest = hashlib.sha256(b"".join(tensor.detach().numpy().tobytes() for tensor in state)).hexdigest()[:12]
(folder / f"result{run.rank}").write_text(f"{digest} {scheduler.get_last_lr()[0]}")
