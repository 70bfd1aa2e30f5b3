"""Which Python a task has, and which torch."""

import os
import sys

import torch

task = os.environ.get("SLURM_PROCID", "0")
names = {"VIRTUAL_ENV": "venv", "CONDA_PREFIX": "conda"}
made_by = "+".join(name for variable, name in names.items() if variable in os.environ) or "none"
print(f"task {task}: {made_by} {sys.prefix}, torch from {torch.__file__.partition('/lib/')[0]}", flush=True)
