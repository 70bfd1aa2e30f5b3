"""The program that ``recovery.py`` and ``overhead.py`` measure: the peers' workload through ``holdfast_runtime``."""

import os
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "peers"))

import common
import torch

import holdfast_runtime as holdfast


def main() -> None:
    folder, total = Path(sys.argv[1]), int(sys.argv[2])
    common.worker_setup()
    model = common.build_model()
    run = holdfast.Run(model, common.build_optim(model))
    log = os.open(folder / "steps", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    for step in run.steps(total):
        with step:
            loss = model(common.batch_for(step.number, run.rank))
            loss.backward()
            step.update(loss)
            facts = (f"{time.time():.6f}", run.rank, step.number, run.epoch, step.loss.hex(), time.process_time())
            os.write(log, (" ".join(map(str, facts)) + "\n").encode())
    (folder / f"digest{run.rank}").write_text(common.digest(model))
    torch.distributed.barrier()


if __name__ == "__main__":
    main()
