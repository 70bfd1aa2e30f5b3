"""torchrun with fully_shard: all processes are started again, from the newest sharded checkpoint."""

import os
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager

import torch.distributed as dist
from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict
from torch.distributed.checkpoint.state_dict_loader import load
from torch.distributed.checkpoint.state_dict_saver import save

import run_torchrun
import sharded_workload as workload
import trial
from workload import build_optimizer

STEPS, CHECKPOINT_EVERY = 50, 20


def rank_main() -> None:
    rank, generation = int(os.environ["RANK"]), int(os.environ["TORCHELASTIC_RESTART_COUNT"])
    trial.write_pid(rank)
    dist.init_process_group("gloo")
    model = workload.build()
    optimizer = build_optimizer(model)
    newest = trial.folder() / "newest"
    first = 0
    if newest.exists():
        first = int(newest.read_text())
        parts, moments = get_state_dict(model, optimizer)
        load({"model": parts, "optimizer": moments}, checkpoint_id=trial.folder() / str(first))
        set_state_dict(model, optimizer, model_state_dict=parts, optim_state_dict=moments)
    for step in range(first, STEPS):
        optimizer.zero_grad()
        model(workload.batch_for(step, rank)).backward()
        optimizer.step()
        trial.log_step(rank=rank, step=step, generation=generation, world=dist.get_world_size())
        if step % CHECKPOINT_EVERY == CHECKPOINT_EVERY - 1:
            parts, moments = get_state_dict(model, optimizer)
            save({"model": parts, "optimizer": moments}, checkpoint_id=trial.folder() / str(step + 1))
            if rank == 0:
                newest.write_text(str(step + 1))
            dist.barrier()
    trial.log_end(rank=rank)
    dist.destroy_process_group()


def job(variables: Mapping[str, str]) -> AbstractContextManager[Callable[[], bool]]:
    return run_torchrun.started(__file__, variables)


if __name__ == "__main__":
    if trial.is_rank():
        rank_main()
    else:
        trial.main(job, first_kill=27)
