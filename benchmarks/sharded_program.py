"""The program that ``sharded.py`` measures: fully_shard through ``holdfast_runtime``."""

import os
import sys
import time
from pathlib import Path

import holdfast_runtime as holdfast
import sharded_workload as workload
from workload import build_optimizer


def main() -> None:
    folder, total, every = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    holdfast.init_process_group()
    model = workload.build()
    run = holdfast.Run(model, build_optimizer(model), snapshot_every=every, digest_every=1000, elastic="throughput")
    log = os.open(folder / "steps", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    for step in run.steps(total):
        began = time.time()
        with step:
            loss = model(workload.batch_for(step.number, run.data_rank))
            loss.backward()
            step.update(loss)
            facts = (f"{time.time():.6f}", run.rank, step.number, run.generation, f"{began:.6f}", step.loss.hex())
            os.write(log, (" ".join(map(str, facts)) + "\n").encode())


if __name__ == "__main__":
    main()
