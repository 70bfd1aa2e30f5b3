"""The workload of ``overhead.py`` without us: plain DistributedDataParallel, or nothing but buckets and all_reduce."""

import os
import sys
import time
from pathlib import Path

import torch
import torch.distributed as dist

import workload
from holdfast_runtime import inprocess
from holdfast_runtime.inprocess import BUCKET_BYTES, layout


def main() -> None:
    folder, total, kind = Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    model = workload.build_model()
    optimizer = workload.build_optimizer(model)
    trained = torch.nn.parallel.DistributedDataParallel(model) if kind == "DDP" else model
    log = os.open(folder / "steps", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    for step in range(total):
        optimizer.zero_grad()
        loss = trained(workload.batch_for(step, rank))
        loss.backward()
        if kind == "buckets":
            buckets = layout(list(model.parameters()), bucket_bytes=BUCKET_BYTES)
            for bucket in buckets:
                # A ring adds up in an order that follows from a buffer's length, and ours ends with a number for each
                # parameter and the vote.
                reduce(bucket, tail=inprocess.LENGTH + len([*model.parameters()]) if bucket is buckets[-1] else 0)
        optimizer.step()
        facts = (f"{time.time():.6f}", rank, step, 0, loss.item().hex(), time.process_time())
        os.write(log, (" ".join(map(str, facts)) + "\n").encode())
    (folder / f"digest{rank}").write_text(workload.digest(model))
    dist.destroy_process_group()


def reduce(parameters: list[torch.nn.Parameter], *, tail: int) -> None:
    gradients = [parameter.grad.reshape(-1) for parameter in parameters if parameter.grad is not None]
    flat = torch.cat([*gradients, torch.zeros(tail)])
    flat *= 1.0 / dist.get_world_size()
    dist.all_reduce(flat)
    start = 0
    for parameter in parameters:
        parameter.grad = flat[start : start + parameter.numel()].view(parameter.shape)
        start += parameter.numel()


if __name__ == "__main__":
    main()
