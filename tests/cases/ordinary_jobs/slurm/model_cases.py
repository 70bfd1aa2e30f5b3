"""Cases of this task, one after the other."""

import os
import sys

import torch

task, tasks = int(os.environ["SLURM_PROCID"]), int(os.environ["SLURM_NTASKS"])
for case in range(task, int(sys.argv[1]), tasks):
    torch.manual_seed(case)
    print(f"task {task}: case {case} modelled, {torch.rand(8).numel()} values", flush=True)
