"""
The same training through ``holdfast_runtime``: a lost node costs the current step, and no process restarts.

    holdfast-run ... train_resilient.py --checkpoints /fsx/checkpoints/bytelm [--steps N] ...

Run by ``bytelm-resilient.sbatch``. Compare with ``trainer.py``: no process group, broadcast, or handling of lost ranks.
"""

import sys
from functools import partial

import torch

import holdfast_runtime as holdfast
from data import Corpus
from holdfast_common import EventLog, kinds
from holdfast_runtime.snapshots import ReplicaCheckpoints
from model import ModelConfig, build_model
from settings import RefusedError, Settings, parse_settings

REPORT_EVERY_STEPS = 5
WARMUP_STEPS = 10


def share_of_rate(step: int, *, total: int) -> float:
    """Up over the first steps, level, and down to a tenth over the last third."""
    return min(1.0, (step + 1) / WARMUP_STEPS, max(0.1, 3 * (total - step) / total))


class Report:
    """
    Prints steps and checkpoints, from one rank, which after a recovery may be another process. Launchers write the
    job's events.
    """

    def __init__(self, run: holdfast.Run, settings: Settings) -> None:
        self._run = run
        self._settings = settings
        self._events = EventLog.from_environment(source="job")
        self._generation = 0
        self._checkpoint = -1

    def step(self, step: holdfast.Step) -> None:
        """Call in each step, after its update."""
        done = step.number + 1
        if self._run.is_logger and self._run.generation != self._generation:
            print(f"generation {self._run.generation} goes on from step {step.number}", flush=True)
        self._generation = self._run.generation
        if self._run.is_logger and (done % REPORT_EVERY_STEPS == 0 or done in (1, self._settings.steps)):
            print(f"step {done}/{self._settings.steps} loss {step.loss:.4f}", flush=True)

    def checkpointed(self, step: int) -> None:
        """Print a checkpoint that is new since the last call."""
        if self._run.is_logger and step > self._checkpoint:
            self._checkpoint = step
            self._events.write(kind=kinds.CHECKPOINT_SAVED, detail={"step": step})


def main() -> int:
    settings = parse_settings()
    torch.set_num_threads(1)
    try:
        corpus = Corpus.open(settings.data)
    except RefusedError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    config = ModelConfig()
    model = build_model(config, seed=settings.seed)
    optimizer = torch.optim.AdamW(model.parameters(), lr=settings.learning_rate, betas=(0.9, 0.95))
    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, partial(share_of_rate, total=settings.steps))
    checkpoints = ReplicaCheckpoints(settings.checkpoints, keep=settings.keep)
    run = holdfast.Run(
        model, optimizer, scheduler=scheduler, checkpoint=checkpoints, checkpoint_every=settings.checkpoint_every
    )
    report = Report(run, settings)
    for step in run.steps(settings.steps):
        with step:
            inputs, targets = corpus.batch(
                seed=settings.seed, step=step.number, rank=run.rank, size=settings.batch_size, context=config.context
            )
            mean = model.loss(inputs, targets)
            mean.backward()
            step.update(mean)
            report.step(step)
        report.checkpointed(checkpoints.newest_step() if step.number % REPORT_EVERY_STEPS == 0 else -1)
    checkpoints.wait()
    report.checkpointed(checkpoints.newest_step())
    return 0


if __name__ == "__main__":
    sys.exit(main())
