"""
What training has: parameters, buffers, optimizer, scheduler and what the script adds.

A step that is done again, perhaps by another process, has to be the same step. So random numbers begin anew in each
step, as a function of seed, step and rank; and what a forward pass changes (buffers) is noted and put back.
"""

import random
import struct
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor, nn

from holdfast_runtime.inprocess._digest import digest_of
from holdfast_runtime.transfer import Flat, flatten, unflatten


class Stateful(Protocol):
    """What the script may add: a scheduler, a data loader, a counter."""

    def state_dict(self) -> dict[str, Any]: ...
    def load_state_dict(self, state: dict[str, Any], /) -> object: ...


@dataclass
class _Beginning:
    """How the step that is running began."""

    buffers: dict[str, tuple[int, Tensor]] = field(default_factory=dict)
    """By name: the version of the buffer that was copied, and the copy."""
    added: dict[str, Any] = field(default_factory=dict)


class TrainingState:
    """All of it, as one tree."""

    def __init__(
        self,
        model: nn.Module,
        optimizer: torch.optim.Optimizer,
        *,
        scheduler: Stateful | None,
        added: Mapping[str, Stateful],
    ) -> None:
        self.seed = torch.initial_seed() & 0x7FFF_FFFF_FFFF_FFFF
        self.model = model
        self.optimizer = optimizer
        self.scheduler = scheduler
        self.added = dict(added)
        self._beginning = _Beginning()

    def begin(self, *, step: int, rank: int) -> None:
        """A step begins, for the first time or again."""
        seed_generators(self.seed, step, rank)
        for name, buffer in self.model.named_buffers():
            known = self._beginning.buffers.get(name)
            if known is None or known[0] != buffer._version:
                self._beginning.buffers[name] = (buffer._version, buffer.detach().clone())
        self._beginning.added = {name: flatten(item.state_dict()) for name, item in self.added.items()}

    @torch.no_grad()
    def begin_again(self) -> None:
        """Put back what the running step may have changed."""
        for name, buffer in self.model.named_buffers():
            if name not in self._beginning.buffers:
                continue
            version, copy = self._beginning.buffers[name]
            if buffer._version != version:
                buffer.copy_(copy)
                self._beginning.buffers[name] = (buffer._version, copy)
        for name, state in self._beginning.added.items():
            self.added[name].load_state_dict(unflatten(state))

    def digest(self) -> int:
        """Of the parameters."""
        return digest_of(self.model.parameters())

    def tree(self) -> dict[str, Any]:
        """The state between two steps; tensors in it are those in use, not copies."""
        return {
            "model": self._tensors(),
            "optimizer": self.optimizer.state_dict(),
            "scheduler": self.scheduler.state_dict() if self.scheduler is not None else {},
            "seed": self.seed,
            "added": {name: item.state_dict() for name, item in self.added.items()},
        }

    def flat(self) -> Flat:
        """The tree in two parts, to be sent."""
        return flatten(self.tree())

    def places(self) -> list[Tensor]:
        """Tensors of the model in the order in which ``flat`` has them: they can be received in place."""
        return [tensor.detach() for tensor in self._tensors().values()]

    def _tensors(self) -> dict[str, Tensor]:
        return {**dict(self.model.named_parameters()), **dict(self.model.named_buffers())}

    @torch.no_grad()
    def load(self, flat: Flat) -> None:
        """Take over a state. Raises KeyError or ValueError when it is of another program."""
        self.load_tree(unflatten(flat))

    @torch.no_grad()
    def load_tree(self, tree: dict[str, Any]) -> None:
        """Take over a state. Raises KeyError or ValueError when it is of another program."""
        own = self._tensors()
        if own.keys() != tree["model"].keys():
            different = sorted(own.keys() ^ tree["model"].keys())
            raise ValueError(f"the state is of another model: {', '.join(different[:3])} only on one side")
        for name, tensor in own.items():
            if tensor.data_ptr() != tree["model"][name].data_ptr() or tensor.device.type != "cpu":
                tensor.copy_(tree["model"][name])
        self.optimizer.load_state_dict(tree["optimizer"])
        if self.scheduler is not None:
            self.scheduler.load_state_dict(tree["scheduler"])
        for name, item in self.added.items():
            item.load_state_dict(tree["added"][name])
        self.seed = tree["seed"]
        self._beginning = _Beginning()


def seed_generators(*numbers: int) -> None:
    """Torch's, Python's and NumPy's generators begin anew, from numbers that say where training is."""
    seed = zlib.crc32(struct.pack(f"!{len(numbers)}q", *numbers)) << 32 | zlib.crc32(repr(numbers).encode())
    torch.manual_seed(seed)
    random.seed(seed)
    np.random.seed(seed & 0xFFFFFFFF)  # noqa: NPY002 - the generator that scripts share
