"""One all-reduce over gloo, as the first program of any tutorial of distributed training."""

import os

import torch
import torch.distributed as dist

dist.init_process_group("gloo")
rank, world = dist.get_rank(), dist.get_world_size()
total = torch.tensor([float(rank)])
dist.all_reduce(total)
print(f"rank {rank} of {world}, local rank {os.environ['LOCAL_RANK']}: sum {total.item():.0f}", flush=True)
dist.barrier()
dist.destroy_process_group()
