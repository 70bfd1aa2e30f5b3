"""
The example's resilient training, which writes down each step and kills one of its ranks once.

Copied beside ``train_resilient.py`` as a program of its own. Every step is a line of ``trace.jsonl`` in the run's
folder: number, exact loss, digest of all parameters, time. Rank 1 ends itself by SIGKILL after step ``KILLED_AFTER``.
"""

import hashlib
import json
import os
import signal
import sys
import time
from typing import Any

import torch

import train_resilient

KILLED_AFTER = 25
models: list[torch.nn.Module] = []


class Traced(train_resilient.Report):
    """Tells what it is given, and writes it down."""

    def step(self, step: Any) -> None:
        super().step(step)
        folder = self._settings.checkpoints
        if self._run.is_logger:
            line = {
                "step": step.number,
                "loss": float(step.loss).hex(),
                "digest": digest(models[0]),
                "time_ns": time.time_ns(),
            }
            with (folder / "trace.jsonl").open("a") as file:
                file.write(json.dumps(line) + "\n")
        marker = folder / "rank-killed"
        if step.number == KILLED_AFTER and self._run.rank == 1 and not marker.exists():
            marker.write_text(str(time.time_ns()))
            os.kill(os.getpid(), signal.SIGKILL)


def digest(model: torch.nn.Module) -> str:
    found = hashlib.sha256()
    for parameter in model.parameters():
        found.update(parameter.detach().contiguous().numpy().tobytes())
    return found.hexdigest()[:16]


def kept_model(*arguments: Any, **named: Any) -> torch.nn.Module:
    models.append(build_model(*arguments, **named))
    return models[-1]


build_model = train_resilient.build_model
train_resilient.build_model = kept_model
train_resilient.Report = Traced  # type: ignore[misc]

if __name__ == "__main__":
    sys.exit(train_resilient.main())
