"""
A loop that is left by ``break`` before its end.

Arguments: folder, then what ``killing`` adds. LAST is the step behind which each rank leaves, by rank; or the
loop, where it is one of TOTALS, the steps at the end of each.
"""

import os
import sys
from pathlib import Path

import torch
from torch import nn

import holdfast_runtime as holdfast

torch.set_num_threads(1)
torch.manual_seed(0)
model = nn.Linear(4, 1)
run = holdfast.Run(model, torch.optim.SGD(model.parameters(), lr=0.01))
last = int(os.environ["LAST"].split(",")[run.rank])
for total in map(int, os.environ.get("TOTALS", "1000").split(",")):
    for step in run.steps(total):
        with step:
            loss = model(torch.randn(8, 4)).square().mean()
            loss.backward()
            step.update(loss)
        if step.number == last:
            break
    if last <= total:
        break
Path(sys.argv[1], f"left{run.rank}").write_text(str(run.step))
