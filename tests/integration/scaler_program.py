"""
FSDP2 with a GradScaler, and gradients that are not finite on one rank in steps 3 and 6.

Arguments: folder, then what ``killing`` adds. AT: the step in which rank 1 kills itself once, behind ``unscale_``.
"""

import hashlib
import math
import os
import signal
import sys
from pathlib import Path

import torch
from torch import nn
from torch.distributed.fsdp import fully_shard

import holdfast_runtime as holdfast

folder, at = Path(sys.argv[1]), int(os.environ.get("AT", "-1"))
torch.set_num_threads(1)
holdfast.init_process_group()
torch.manual_seed(0)
model = nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.Linear(16, 8))
for part in (model[0], model[2], model):
    fully_shard(part)
optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
scaler = torch.amp.GradScaler("cpu", init_scale=2.0**20, growth_interval=2)
run = holdfast.Run(model, optimizer, state={"scaler": scaler}, snapshot_every=1)
for step in run.steps(9):
    with step:
        inputs = torch.randn(4, 8, generator=torch.Generator().manual_seed(100 * step.number + run.data_rank))
        if step.number in (3, 6) and run.data_rank == 1:
            inputs *= math.inf
        loss = (model(inputs) - inputs).square().mean()
        scaler.scale(loss).backward()
        step.reduce(loss)
        scaler.unscale_(optimizer)
        if step.number == at and run.rank == 1 and not (folder / "died").exists():
            (folder / "died").touch()
            os.kill(os.getpid(), signal.SIGKILL)
        if not math.isfinite(step.clip(1.0)):
            optimizer.zero_grad()
        step.update(loss)
        scaler.update()
parts = [parameter.to_local().detach().numpy().tobytes() for parameter in model.parameters()]  # type: ignore[operator]
digest = hashlib.sha256(b"".join(parts)).hexdigest()[:12]
updates = {int(state["step"]) for state in optimizer.state.values()}
(folder / f"result{run.rank}").write_text(f"{digest} {scaler.get_scale()} {updates}")
