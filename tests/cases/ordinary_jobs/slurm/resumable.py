"""Steps with a checkpoint after each. The first attempt has more of them than its time limit holds."""

import sys
import time
from pathlib import Path

import torch

file = Path(sys.argv[1])
begin = torch.load(file)["step"] if file.exists() else 0
steps = begin + 5 if begin else 1000
print("begins at a checkpoint" if begin else "begins at step 0", flush=True)
for step in range(begin, steps):
    time.sleep(0.5)
    torch.save({"step": step + 1}, file.with_suffix(".new"))
    file.with_suffix(".new").replace(file)
print("trained to the end", flush=True)
