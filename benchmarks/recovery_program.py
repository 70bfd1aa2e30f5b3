"""The program that ``recovery.py`` and ``overhead.py`` measure: the peers' workload through ``holdfast_runtime``."""

import os
import sys
import time
from pathlib import Path

import torch

import holdfast_runtime as holdfast
import workload


def main() -> None:
    folder, total = Path(sys.argv[1]), int(sys.argv[2])
    model = workload.build_model()
    run = holdfast.Run(model, workload.build_optimizer(model))
    log = os.open(folder / "steps", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    for step in run.steps(total):
        with step:
            loss = model(workload.batch_for(step.number, run.rank))
            loss.backward()
            step.update(loss)
            facts = (f"{time.time():.6f}", run.rank, step.number, run.generation, step.loss.hex(), time.process_time())
            os.write(log, (" ".join(map(str, facts)) + "\n").encode())
    (folder / f"digest{run.rank}").write_text(workload.digest(model))
    torch.distributed.barrier()


if __name__ == "__main__":
    main()
