"""Place of the program in its loop: kill at a place, record of the place at which a loss is noticed, small model."""

import os
import random
import signal
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

WIDTH, HIDDEN, SAMPLES, STEPS = 16, 32, 8, 12
PARTS = 4
"""Logical ranks of the elastic layout."""
PAUSE_S = 0.6
"""Longer than a launcher takes to notice a killed rank and to close the connections of the others."""
WARM_WITHIN_S = 5.0
"""A spare begins when the ranks train, and has a core beside them or not."""


class Loop:
    """State of the running loop. The place is a string, so that a form can ask for it anywhere."""

    def __init__(self) -> None:
        self.read_environment()

    def read_environment(self) -> None:
        """Begin: this module may have been imported before the process had its environment."""
        self.layout = os.environ.get("LAYOUT", "replicas")
        self.collective = os.environ.get("COLLECTIVE") == "1"
        self.pauses = os.environ.get("PAUSE", "")
        self.waits = os.environ.get("WARM_SPARE") == "1"
        self.out = Path(os.environ.get("OUT", "."))
        place, rank, step = os.environ.get("KILL", "none:0:0").split(":")
        self.kill_place, self.kill_rank, self.kill_step = place, int(rank), int(step)
        self.place = "start"
        self.whole = False
        self.number = -1
        self.trial = False
        self.learned: list[str] = []
        self.came_later = False
        self.redone = 0
        self.most = 0
        self.generation = 0
        self.model: Any = None
        self.optimizer: Any = None
        self.run: Any = None
        self.noise = 0.0

    @property
    def sharded(self) -> bool:
        """Return True if ranks hold parts of parameters."""
        return self.layout != "replicas"

    @property
    def kills(self) -> bool:
        """Return True if this job is killed, by the program or by the injector of faults."""
        return self.kill_place != "none"

    def at(self, place: str) -> None:
        """Enter a place. A generation that is new since the last call is a loss that was noticed at the last place."""
        if self.run is not None and self.run.generation != self.generation:
            if self.generation:
                self.learned.append(f"{self.number}:{self.place}")
            self.generation = self.run.generation
        self.place = place

    def begin(self, number: int, *, trial: bool) -> None:
        """Begin a pass of the loop's body."""
        self.at("outset")
        self.number, self.trial, self.whole = number, trial, False
        self.redone += number < self.most
        self.most = max(self.most, number + 1 if self.run.step > number else number)
        if self.waits and not trial and number == self.kill_step and not (self.out / "killed").exists():
            self.wait_for_spare()

    def wait_for_spare(self) -> None:
        """Wait until the spare has tried a step alone: the loop's body behind it runs when it has a rank."""
        end = time.monotonic() + WARM_WITHIN_S
        while not (self.out / "tried").exists() and time.monotonic() < end:
            time.sleep(0.02)

    def __enter__(self) -> None:
        """Enter the body of a step."""

    def __exit__(self, kind: type[BaseException] | None, error: object, trace: object) -> None:
        """Note whether the body has run to its end; no statement of the program stands at its end for that."""
        self.whole = kind is None

    def left(self) -> None:
        """Record a step that was left: its body has not run to its end."""
        if not self.whole and not self.trial:
            self.learned.append(f"{self.number}:{self.place}")
            self.generation = self.run.generation
        self.most = max(self.most, self.run.step)

    def die(self, place: str) -> None:
        """Kill this process if it is its time; the file is written first and outlives it."""
        self.at(place)
        if self.trial or (place, self.number) != (self.kill_place, self.kill_step) or self.run.rank != self.kill_rank:
            return
        if self.once("killed"):
            if self.layout == "elastic":
                os.kill(os.getppid(), signal.SIGKILL)
            os.kill(os.getpid(), signal.SIGKILL)
            time.sleep(60.0)

    def once(self, name: str) -> bool:
        """Return True in the first call of this name in the whole job."""
        try:
            (self.out / name).touch(exist_ok=False)
        except FileExistsError:
            return False
        return True

    def pause(self) -> None:
        """Wait between two steps until the loss of the killed rank is noticed."""
        if self.pauses and self.number == self.kill_step and not self.learned and not self.came_later:
            time.sleep(PAUSE_S)
            if self.pauses == "mean":
                self.run.all_reduce_mean(torch.zeros(1))

    def parameters(self) -> list[Tensor]:
        """This rank's parts of all parameters, without history."""
        return [local(parameter).detach() for parameter in self.model.parameters()]


HERE = Loop()
"""Of this process: modules ask it for the place, and hold nothing of it."""


class InForward(nn.Module):
    """A place in a forward. A module of its own: it stands for no code of a program's forward."""

    def forward(self, values: Tensor) -> Tensor:
        if HERE.place == "forward":
            HERE.die("forward")
        return values


class Net(nn.Module):
    """Two layers with what a form puts before and between them."""

    def __init__(
        self,
        *,
        rate: float = 0.0,
        norm: bool = False,
        inner: nn.Module | None = None,
        middle: nn.Module | None = None,
    ) -> None:
        super().__init__()
        self.inner = inner or nn.Identity()
        self.first = nn.Linear(WIDTH, HIDDEN)
        self.norm: nn.Module = nn.BatchNorm1d(HIDDEN) if norm else nn.Identity()
        self.place = InForward()
        self.drop = nn.Dropout(rate)
        self.middle = middle or nn.GELU()
        self.last = nn.Linear(HIDDEN, WIDTH)

    def forward(self, values: Tensor) -> Tensor:
        hidden = self.place(self.norm(self.first(self.inner(values))))
        found: Tensor = self.last(self.drop(self.middle(hidden)))
        return found


def local(tensor: Tensor) -> Tensor:
    """A rank's part of a tensor."""
    part: Tensor = tensor.to_local() if hasattr(tensor, "to_local") else tensor
    return part


def samples(number: int, part: int) -> Tensor:
    """Batch of a step and a part of the data; parts differ in their mean."""
    generator = torch.Generator().manual_seed(1000 * number + part)
    return torch.randn(SAMPLES, WIDTH, generator=generator, dtype=torch.float32) + 0.3 * part


def is_last_of_epoch(number: int) -> bool:
    """Return True for each fourth step."""
    return number % 4 == 3


def draws() -> list[float]:
    """One number of each default generator."""
    return [torch.rand(1).item(), float(np.random.rand()), random.random()]


def sharded(model: Any, layout: str, units: list[Any]) -> None:
    """Cut a model among the ranks."""
    import torch.distributed as dist
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    count = dist.get_world_size()
    if layout == "hsdp":
        mesh = init_device_mesh("cpu", (2, count // 2), mesh_dim_names=("replicate", "shard"))
    else:
        mesh = init_device_mesh("cpu", (count,))
    for unit in (*units, model):
        fully_shard(unit, mesh=mesh)
