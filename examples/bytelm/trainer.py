"""
Training loop of one rank: data parallel, one gradient exchange per step, a checkpoint every few steps.

Every wait for another rank has a deadline. If a rank is lost, rank 0 saves the last whole step before it exits; if rank
0 is lost, the last regular checkpoint remains.
"""

import math
import time
from collections.abc import Callable
from dataclasses import asdict
from datetime import timedelta

import torch
import torch.distributed as dist

import checkpoint
from adamw import FlatAdamW
from data import Corpus
from holdfast_common import EventLog, kinds
from model import ModelConfig, build_model
from settings import Place, RefusedError, Settings

REPORT_EVERY_STEPS = 5
WARMUP_STEPS = 10


class RankLostError(Exception): ...


class Trainer:
    def __init__(self, *, settings: Settings, place: Place, events: EventLog) -> None:
        self.settings = settings
        self.place = place
        self.events = events
        self.step = 0
        self.saved_step = 0
        self.loss = math.nan
        config = ModelConfig()
        self.context = config.context
        self.corpus = Corpus.open(settings.data)
        self.model = build_model(config, seed=settings.seed)
        self.optimizer = FlatAdamW(self.model.parameters())
        self.identity: checkpoint.Identity = {
            **asdict(config),
            "seed": settings.seed,
            "batch_size": settings.batch_size,
            "world_size": place.world_size,
            "data_sha256": self.corpus.sha256,
        }

    def load(self) -> str:
        """Load the newest checkpoint, if any; return the damage of newer ones."""
        found, damage = checkpoint.load(
            folder=self.settings.checkpoints,
            identity=self.identity,
            allow_older=self.settings.allow_older_checkpoint,
        )
        if found is not None:
            self.step = self.saved_step = int(found["step"])
            self.loss = float(found["state"]["loss"])
            for name, tensor in self.optimizer.state.items():
                tensor.copy_(found["state"][name])
        return damage

    def share(self) -> None:
        """Broadcast rank 0's state."""
        step = torch.tensor([self.step])
        for tensor in (step, *self.optimizer.state.values()):
            dist.broadcast(tensor, src=0)
        self.step = self.saved_step = int(step)

    def run(self, *, stopping: Callable[[], bool]) -> None:
        """Step until the end, or until stopped."""
        while self.step < self.settings.steps and not stopping():
            self.train_step()
            if self.step % REPORT_EVERY_STEPS == 0 or self.step in (1, self.settings.steps):
                self.report()
            if self.step % self.settings.checkpoint_every == 0 or self.step == self.settings.steps:
                self.save()

    def train_step(self) -> None:
        """One update from the mean gradient of all ranks."""
        inputs, targets = self.corpus.batch(
            seed=self.settings.seed,
            step=self.step,
            rank=self.place.rank,
            size=self.settings.batch_size,
            context=self.context,
        )
        loss = self.model.loss(inputs, targets)
        self.optimizer.gradient.zero_()
        loss.backward()
        mean_loss = loss.detach()
        for tensor in (self.optimizer.gradient, mean_loss):
            dist.all_reduce(tensor)
            tensor.div_(self.place.world_size)
        # Nothing of the state has changed up to here: a rank lost above costs this step and no more.
        self.optimizer.step(self.step + 1, learning_rate=self._learning_rate())
        self.step += 1
        self.loss = mean_loss.item()
        if not math.isfinite(self.loss):
            raise RefusedError(f"loss is {self.loss} at step {self.step}; lower --learning-rate")

    def _learning_rate(self) -> float:
        """Up over the first steps, level, and down to a tenth over the last third."""
        up = min(1.0, (self.step + 1) / WARMUP_STEPS)
        down = min(1.0, max(0.1, 3 * (self.settings.steps - self.step) / self.settings.steps))
        return self.settings.learning_rate * min(up, down)

    def report(self) -> None:
        if self.place.rank == 0:
            print(f"step {self.step}/{self.settings.steps} loss {self.loss:.4f}", flush=True)
            self.events.write(kind=kinds.JOB_PROGRESS, detail={"step": self.step, "loss": self.loss})

    def save(self) -> None:
        """Write a checkpoint, unless this step has one."""
        if self.place.rank != 0 or self.step == self.saved_step:
            return
        began = time.monotonic()
        path = checkpoint.save(
            folder=self.settings.checkpoints,
            step=self.step,
            state={**self.optimizer.state, "loss": torch.tensor(self.loss, dtype=torch.float64)},
            identity=self.identity,
            keep=self.settings.keep,
        )
        self.saved_step = self.step
        duration_s = time.monotonic() - began
        self.events.write(kind=kinds.CHECKPOINT_SAVED, duration_s=duration_s, detail={"step": self.step})
        print(f"checkpoint {path} saved in {duration_s:.2f} s", flush=True)


def train(*, settings: Settings, place: Place, events: EventLog, stopping: Callable[[], bool]) -> bool:
    """Run this rank; True after the last step, False if stopped before."""
    torch.set_num_threads(1)
    deadline = timedelta(seconds=settings.timeout_s)
    meeting_point = f"tcp://{place.address}:{place.port}"
    trainer: Trainer | None = None
    try:
        dist.init_process_group(
            "gloo", init_method=meeting_point, rank=place.rank, world_size=place.world_size, timeout=deadline
        )
        trainer = _prepare(settings=settings, place=place, events=events)
        trainer.run(stopping=stopping)
        if trainer.step == settings.steps:
            dist.barrier()
    except RuntimeError as error:  # what gloo raises for a closed connection and for a deadline
        if trainer is not None:
            trainer.save()
        if not stopping():
            at = f"at step {trainer.step}" if trainer is not None else f"before the first step, at {meeting_point}"
            raise RankLostError(f"rank {place.rank} lost the other ranks {at}: {str(error).splitlines()[0]}") from error
        return False
    trainer.save()
    if trainer.step == settings.steps and place.rank == 0:
        events.write(kind=kinds.JOB_FINISHED, detail={"step": trainer.step, "loss": trainer.loss})
    return trainer.step == settings.steps


def _prepare(*, settings: Settings, place: Place, events: EventLog) -> Trainer:
    """Load and agree: all ranks start from the same state, or all refuse."""
    trainer, refusal, damage = None, None, ""
    try:
        trainer = Trainer(settings=settings, place=place, events=events)
        if place.rank == 0:
            damage = trainer.load()
    except RefusedError as error:
        refusal = error
    refusals = torch.tensor([0 if refusal is None else 1])
    dist.all_reduce(refusals)
    if refusal is not None or trainer is None:
        raise refusal or AssertionError("neither prepared nor refused")
    if refusals.item():
        raise RefusedError("another rank refused to start; see its message")
    trainer.share()
    nodes: list[str] = [""] * place.world_size
    dist.all_gather_object(nodes, place.node)
    if place.rank == 0:
        _announce(trainer, nodes=nodes, damage=damage)
    return trainer


def _announce(trainer: Trainer, *, nodes: list[str], damage: str) -> None:
    resumed = trainer.step > 0 or trainer.place.restart > 0
    origin = f"resumed from step {trainer.step}" if trainer.step else "started from step 0"
    print(f"{origin}: {len(nodes)} ranks on {', '.join(nodes)}" + (f"; {damage}" if damage else ""), flush=True)
    trainer.events.write(
        kind=kinds.JOB_RESUMED if resumed else kinds.JOB_STARTED,
        evidence=damage,
        detail={"step": trainer.step, "world_size": len(nodes), "nodes": ",".join(nodes)},
    )
