"""A rank of the job that ``requeue.py`` lets Slurm start again, from a checkpoint of every 20 steps."""

import os
import sys
from pathlib import Path

import torch.distributed as dist

sys.path.insert(0, str(Path(__file__).parent / "peers"))
import checkpointed

if __name__ == "__main__":
    dist.init_process_group("gloo")
    checkpointed.train(rank=int(os.environ["RANK"]), generation=int(os.environ.get("SLURM_RESTART_COUNT", "0")))
