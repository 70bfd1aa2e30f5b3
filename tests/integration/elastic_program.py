"""
The training program of the tests of elastic jobs: FSDP2 whose size changes, and a line of each rank for each step.

Arguments: folder for the results, updates to make, seconds of sleep per step. ``ELASTIC`` is a number of logical ranks,
or "throughput"; ``SNAPSHOT_EVERY`` the updates from one snapshot to the next. The digest is a sum over the rows of all
parameters and moments that a rank has, so the sum over all ranks does not depend on who has which.
"""

import json
import os
import sys
import time
import warnings
import zlib
from pathlib import Path

import torch
from sharded_model import BATCH, CONTEXT, VOCABULARY, Model, loss_of
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import DTensor

import holdfast_runtime as holdfast
from holdfast_runtime.faults import Injector
from holdfast_runtime.groups import private
from holdfast_runtime.transfer import local

STAYS_AWAY = "stays-away"
"""Where this file is, processes that begin never become ready."""


def sum_of_rows(model: torch.nn.Module, optimizer: torch.optim.Optimizer) -> int:
    """Of all rows of parameters and moments here."""
    total = 0
    for name, parameter in model.named_parameters():
        assert isinstance(parameter, DTensor)
        _, offsets = private.local_part(parameter)
        first = offsets[0]
        state = optimizer.state[parameter]
        for key, tensor in (("", parameter), *((key, state[key]) for key in ("exp_avg", "exp_avg_sq") if key in state)):
            for number, row in enumerate(local(tensor)):
                values = row.contiguous().numpy().tobytes()
                total += zlib.crc32(values, zlib.crc32(f"{name} {key} {first + number}".encode()))
    return total


def main() -> None:
    out, total, pause_s = Path(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3])
    if (out / STAYS_AWAY).exists():
        time.sleep(3600.0)
    torch.set_num_threads(1)
    warnings.filterwarnings("ignore")
    holdfast.init_process_group()
    torch.manual_seed(1)
    mesh = init_device_mesh("cpu", (torch.distributed.get_world_size(),))
    model = Model()
    for module in (*model.layers, model):
        fully_shard(module, mesh=mesh)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=4, gamma=0.5)
    elastic, every = os.environ["ELASTIC"], os.environ.get("SNAPSHOT_EVERY")
    run = holdfast.Run(
        model,
        optimizer,
        scheduler=scheduler,
        elastic=int(elastic) if elastic.isdecimal() else elastic,
        snapshot_every=int(every) if every and every.isdecimal() else every or None,
    )
    faults = Injector.from_environment()
    for step in run.steps(total):
        with step:
            began_s, done = time.time(), []
            faults.rank, faults.step = run.rank, step.number
            time.sleep(pause_s)
            for part in step.parts():
                faults.point("part")
                generator = torch.Generator().manual_seed(1000 * step.number + part)
                tokens = torch.randint(0, VOCABULARY, (BATCH, CONTEXT + 1), generator=generator)
                step.backward(loss_of(model(tokens[:, :-1]), tokens[:, 1:]))
                done.append(part)
            step.clip(0.5)
            step.update()
            line = {
                "step": step.number,
                "loss": step.loss.hex(),
                "digest": sum_of_rows(model, optimizer),
                "size": run.world_size,
                "generation": run.generation,
                "parts": done,
                "leaves": holdfast.elastic_event_detected(),
                "began_s": began_s,
                "time_s": time.time(),
            }
            with (out / f"rank{run.rank}.jsonl").open("a") as file:
                file.write(json.dumps(line) + "\n")
    (out / f"done{run.rank}").write_text("")


if __name__ == "__main__":
    main()
