"""The training of the runtimes that go on from a checkpoint: rank 0 writes one to disk every 20 steps."""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

import torch
import torch.distributed as dist

import trial
import workload

STEPS, CHECKPOINT_EVERY = 50, 20


def train(*, rank: int, generation: int, update: Callable[[], AbstractContextManager[object]] = nullcontext) -> None:
    """
    In a process group that is there, from the checkpoint to the last step.

    Args:
        update: Around each update of the optimizer. Default: nothing.
    """
    checkpoint = trial.folder() / "checkpoint.pt"
    model = workload.build_model()
    optimizer = workload.build_optimizer(model)
    first = load(checkpoint, model, optimizer)
    trained = torch.nn.parallel.DistributedDataParallel(model)
    for step in range(first, STEPS):
        optimizer.zero_grad()
        trained(workload.batch_for(step, rank)).backward()
        with update():
            optimizer.step()
        trial.log_step(rank=rank, step=step, generation=generation, world=dist.get_world_size())
        if step % CHECKPOINT_EVERY == CHECKPOINT_EVERY - 1:
            if rank == 0:
                save(checkpoint, model, optimizer, step=step)
            dist.barrier()
    trial.log_end(rank=rank)
    dist.destroy_process_group()


def save(checkpoint: Path, model: torch.nn.Module, optimizer: torch.optim.Optimizer, *, step: int) -> None:
    new = checkpoint.with_suffix(".new")
    torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "step": step}, new)
    new.replace(checkpoint)


def load(checkpoint: Path, model: torch.nn.Module, optimizer: torch.optim.Optimizer) -> int:
    if not checkpoint.exists():
        return 0
    saved = torch.load(checkpoint, weights_only=True)
    model.load_state_dict(saved["model"])
    optimizer.load_state_dict(saved["optimizer"])
    return int(saved["step"]) + 1
