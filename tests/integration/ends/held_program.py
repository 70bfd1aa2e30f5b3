"""
A small training of replicas in which rank 1 writes a file in step 3, once. Arguments: as ``runtime_program``.

``HELD`` names the file, and ``HELD_ONCE`` one that the first process makes that does so.
"""

import os
import sys
from contextlib import suppress
from pathlib import Path

import torch
from torch import nn

import holdfast_runtime as holdfast


def main() -> None:
    out, total = Path(sys.argv[1]), int(sys.argv[2])
    torch.set_num_threads(1)
    torch.manual_seed(0)
    model = nn.Linear(4, 1)
    run = holdfast.Run(model, torch.optim.SGD(model.parameters(), lr=0.1))
    for step in run.steps(total):
        with step:
            if (run.rank, step.number) == (1, 3):
                with suppress(FileExistsError):
                    os.close(os.open(os.environ["HELD_ONCE"], os.O_CREAT | os.O_EXCL))
                    Path(os.environ["HELD"]).write_text("")
            loss = model(torch.ones(2, 4)).square().mean()
            loss.backward()
            step.update(loss)
    (out / f"done{run.rank}").write_text(str(os.getpid()))


if __name__ == "__main__":
    main()
