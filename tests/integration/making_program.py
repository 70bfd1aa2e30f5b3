"""
A sharded job that is struck while its ranks make their models.

Arguments: as those of ``sharded_program``. ``STRUCK`` names what happens, once in the life of the job: rank 1 is killed
before its mesh, behind its mesh, behind its model, or between ``Run`` and the loop, where the weights are changed;
"late": it has its model at once, and rank 0 a second later.
"""

import json
import os
import signal
import sys
import time
import warnings
from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard

import holdfast_runtime as holdfast
from holdfast_runtime.inprocess import digest_of
from holdfast_runtime.transfer import local

STRUCK = os.environ.get("STRUCK", "")
OTHERS_ARE_DONE_S = 0.7
"""For the others to have their models."""


def strike(place: str, out: Path) -> None:
    if place != STRUCK or os.environ["RANK"] != "1":
        return
    time.sleep(OTHERS_ARE_DONE_S)
    try:
        (out / "struck").touch(exist_ok=False)
    except FileExistsError:
        return
    os.kill(os.getpid(), signal.SIGKILL)


def main() -> None:
    out, total = Path(sys.argv[1]), int(sys.argv[2])
    torch.set_num_threads(1)
    warnings.filterwarnings("ignore")
    holdfast.init_process_group()
    strike("before the mesh", out)
    mesh = init_device_mesh("cpu", (2, dist.get_world_size() // 2), mesh_dim_names=("replicate", "shard"))
    strike("behind the mesh", out)
    torch.manual_seed(1)
    model = nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 1))
    fully_shard(model, mesh=mesh)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    if STRUCK == "late" and dist.get_rank() == 0:
        time.sleep(OTHERS_ARE_DONE_S)
        dist.isend(torch.ones(1), 1)  # to a rank that has gone it is an error
        (out / "struck").touch()
    strike("behind the model", out)
    run = holdfast.Run(model, optimizer, snapshot_every=2)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(0.5)
    strike("before the loop", out)
    for step in run.steps(total):
        with step:
            generator = torch.Generator().manual_seed(1000 * step.number + run.data_rank)
            loss = model(torch.randn(4, 8, generator=generator)).square().mean()
            loss.backward()
            step.update(loss=loss)
        digest = digest_of([local(parameter) for parameter in model.parameters()])
        line = {"step": step.number, "loss": step.loss.hex(), "digest": digest}
        with (out / f"rank{run.rank}.jsonl").open("a") as file:
            file.write(json.dumps(line) + "\n")


if __name__ == "__main__":
    main()
