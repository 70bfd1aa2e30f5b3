"""
What training has: parameters, buffers, optimizer, scheduler and what the script adds.

A step that is done again, perhaps by another process, has to be the same step. So random numbers begin anew in each
step, as a function of seed, step and rank; and what a step changes before its update (buffers, what the script adds) is
noted when it begins and put back when it is done again.
"""

import random
import struct
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor, nn

from holdfast_runtime.inprocess.digest import digest_of
from holdfast_runtime.sharded import is_statistic
from holdfast_runtime.snapshots import Shard
from holdfast_runtime.transfer import Flat, flatten, local, read_skeleton, unflatten

SMALL = 1 << 16
"""Buffers of so many numbers or fewer are copied in each step, because batch_norm counts no version for its changes."""


class Stateful(Protocol):
    """What the script may add: a scheduler, a data loader, a counter."""

    def state_dict(self) -> dict[str, Any]: ...
    def load_state_dict(self, state: dict[str, Any], /) -> object: ...


class _Seed:
    """Of the random numbers of all steps, as something that has state."""

    def __init__(self, state: "TrainingState") -> None:
        self._state = state

    def state_dict(self) -> dict[str, int]:
        return {"seed": self._state.seed}

    def load_state_dict(self, state: dict[str, int], /) -> None:
        self._state.seed = state["seed"]


@dataclass
class _Copy:
    """A copy of a tensor, and which state of which memory it is a copy of."""

    version: int
    address: int
    values: Tensor

    @staticmethod
    def of(tensor: Tensor) -> "_Copy":
        return _Copy(tensor._version, tensor.data_ptr(), tensor.detach().clone())

    def is_of(self, tensor: Tensor) -> bool:
        """Whether the copy is still that of the tensor, as far as its version tells."""
        return self.version == tensor._version and self.address == tensor.data_ptr()


@dataclass
class _Notes:
    """How the step that is running began."""

    open: bool = False
    """Whether there is a step to put back; not after its update."""
    buffers: dict[str, _Copy] = field(default_factory=dict)
    added: dict[str, Flat] = field(default_factory=dict)


class TrainingState:
    """
    All of it, as one tree.

    Raises:
        ValueError: the optimizer, or the script's part, cannot be sent to another process.
    """

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
        self._notes = _Notes()
        # Walking through all modules in each step would cost more than looking at those that have buffers.
        self._owners = [(name, module) for name, module in model.named_modules() if module._buffers]
        self._kept = {name for name, _ in model.named_buffers()} & model.state_dict().keys()
        self._check_parts()

    @property
    def on_gpu(self) -> bool:
        """Whether some parameter of the model is."""
        return any(parameter.is_cuda for parameter in self.model.parameters())

    def seed_step(self, *, step: int, rank: int) -> None:
        """Random numbers of a step are the same each time that it is done."""
        seed_generators(self.seed, step, rank)

    def note(self) -> None:
        """A step begins, for the first time or again: remember what it may change before its update."""
        notes = self._notes
        for name, buffer, _ in self._buffers():
            known = notes.buffers.get(name)
            if known is None or buffer.numel() <= SMALL or not known.is_of(buffer):
                notes.buffers[name] = _Copy.of(buffer)
        for name, item in self.added.items():
            before = notes.added.get(name)
            notes.added[name] = _copied(flatten(item.state_dict()), before.tensors if before else [])
        notes.open = True

    def committed(self) -> None:
        """The update is finished: nothing of the step is put back any more."""
        self._notes.open = False

    @torch.no_grad()
    def put_back(self) -> None:
        """Undo what a step without its update has changed."""
        if not self._notes.open:
            return
        for name, buffer, _ in self._buffers():
            known = self._notes.buffers.get(name)
            if known is not None and (buffer.numel() <= SMALL or not known.is_of(buffer)):
                buffer.copy_(known.values)
        for name, flat in self._notes.added.items():
            self.added[name].load_state_dict(unflatten(flat))
        self._notes = _Notes()

    def forget(self) -> None:
        """A step was tried for nothing. Parameters are left as it has made them: another state is put in."""
        self.put_back()
        self.noted_nothing()
        self.optimizer.state.clear()
        for parameter in self.model.parameters():
            parameter.grad = None

    def shard(self) -> Shard:
        """All of it, as snapshots take it."""
        extra: dict[str, Stateful] = {"holdfast seed": _Seed(self), **self.added}
        if self.scheduler is not None:
            extra["holdfast scheduler"] = self.scheduler
        return Shard(self.model, self.optimizer, extra)

    def noted_nothing(self) -> None:
        """Another state has been put in: there is no step to put back."""
        self._notes = _Notes()

    def changed_buffers(self) -> list[Tensor]:
        """Those of the model's kept buffers that the running step has changed: the same ones on all ranks."""
        known = self._notes.buffers
        return [
            buffer
            for name, buffer, module in self._buffers()
            if name in self._kept and (is_statistic(module) or name not in known or not known[name].is_of(buffer))
        ]

    def digest(self) -> int:
        """Of the parameters, as far as this rank holds them."""
        return digest_of(map(local, self.model.parameters()))

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
        """Tensors of the model in the order in which ``flat`` has them."""
        return [*self._tensors().values()]

    def receivers(self) -> list[Tensor]:
        """
        Tensors of the model, and of the optimizer as far as it has state, in the order in which ``flat`` has them.

        What is received may be put into them: ``load`` takes it as it is.
        """
        return flatten({"model": self._tensors(), "optimizer": self.optimizer.state_dict()}).tensors

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
            if tensor.data_ptr() != tree["model"][name].data_ptr():
                tensor.copy_(tree["model"][name])
        self.optimizer.load_state_dict(tree["optimizer"])
        _keep_kinds(self.optimizer, tree["optimizer"]["state"])
        if self.scheduler is not None:
            self.scheduler.load_state_dict(tree["scheduler"])
        for name, item in self.added.items():
            item.load_state_dict(tree["added"][name])
        self.seed = tree["seed"]
        self._notes = _Notes()

    def _tensors(self) -> dict[str, Tensor]:
        named = {**dict(self.model.named_parameters()), **dict(self.model.named_buffers())}
        return {name: local(tensor) for name, tensor in named.items()}

    def _buffers(self) -> Iterable[tuple[str, Tensor, nn.Module]]:
        for prefix, module in self._owners:
            for name, buffer in module._buffers.items():
                if buffer is not None:
                    yield f"{prefix}.{name}" if prefix else name, buffer, module

    def _check_parts(self) -> None:
        """Better now than at the first fault: what is sent may only consist of plain values, tensors and arrays."""
        own: dict[str, Stateful] = {"optimizer": self.optimizer}
        if self.scheduler is not None:
            own["scheduler"] = self.scheduler
        for name, item in (*own.items(), *self.added.items()):
            _check_sendable(name, item)


def _keep_kinds(optimizer: torch.optim.Optimizer, sent: Mapping[int, Mapping[str, Any]]) -> None:
    """
    Torch gives an optimizer's state the type of the parameter when it is loaded; with fewer bits it is another.

    What was sent is what a rank holds; beside a sharded parameter it is sharded as that.
    """
    parameters = [parameter for group in optimizer.param_groups for parameter in group["params"]]
    for number, values in sent.items():
        own, parameter = optimizer.state[parameters[number]], parameters[number]
        for name, value in values.items():
            if isinstance(value, Tensor):
                kept = value.to(own[name].device) if own[name].dtype != value.dtype else own[name]
                own[name] = like(parameter, kept)


def like(parameter: Tensor, part: Tensor) -> Tensor:
    """A rank's part of a tensor, sharded as its parameter where it has the size of the parameter's part."""
    if not hasattr(parameter, "to_local") or part.shape != local(parameter).shape:
        return part
    from torch.distributed.tensor import DTensor

    assert isinstance(parameter, DTensor)
    return DTensor.from_local(
        part,
        parameter.device_mesh,
        parameter.placements,
        run_check=False,
        shape=parameter.shape,
        stride=parameter.stride(),
    )


def _check_sendable(name: str, item: Stateful) -> None:
    try:
        read_skeleton(flatten(item.state_dict()).skeleton_bytes)
    except (ValueError, TypeError, AttributeError) as error:
        raise ValueError(f"state_dict() of {name} cannot be sent to another process: {error}") from error


def _copied(flat: Flat, memory: list[Tensor]) -> Flat:
    """
    With copies of all tensors, in the memory of older copies where they fit.

    All are copied: what scripts keep there is often changed through ``.data``, which no version tells.
    """
    copies = []
    for number, tensor in enumerate(flat.tensors):
        old = memory[number] if number < len(memory) else None
        fits = old is not None and (old.shape, old.dtype, old.device) == (tensor.shape, tensor.dtype, tensor.device)
        copies.append(old.copy_(tensor) if old is not None and fits else tensor.clone())
    return Flat(skeleton=flat.skeleton, tensors=copies)


def seed_generators(*numbers: int) -> None:
    """Torch's, Python's and NumPy's generators begin anew, from numbers that say where training is."""
    seed = zlib.crc32(struct.pack(f"!{len(numbers)}q", *numbers)) << 32 | zlib.crc32(repr(numbers).encode())
    torch.manual_seed(seed)
    random.seed(seed)
    np.random.seed(seed & 0xFFFFFFFF)  # the generator that scripts share
