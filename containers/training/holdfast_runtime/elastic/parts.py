"""
Parts of the state, cut again for another number of ranks.

Rows of parameters and moments are cut; what all ranks share, such as step counters and buffers, goes to each once.
"""

import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.distributed.tensor import DTensor

from holdfast_runtime.groups import UnsupportedError
from holdfast_runtime.state import put_buffers, put_groups
from holdfast_runtime.transfer import Flat, local

PARAMETER, OPTIMIZER, BUFFER, STATE = "parameter ", "optimizer ", "buffer ", "state "


@dataclass(frozen=True)
class Part:
    """State of a step at one rank of a size. Its tensors are not changed."""

    rank: int
    size: int
    step: int
    tensors: Mapping[str, Tensor]
    """By the names that snapshots give them."""
    extra: bytes
    """What is no tensor."""


class Rows:
    """
    The rows of a model's parameters at any size, and what goes from one size to another.

    Args:
        shapes: of the whole parameters, by name.
    """

    def __init__(self, shapes: Mapping[str, Sequence[int]]) -> None:
        self._shapes = {name: tuple(shape) for name, shape in shapes.items()}

    @classmethod
    def of(cls, model: nn.Module) -> "Rows":
        return cls({name: parameter.shape for name, parameter in model.named_parameters()})

    def held(self, rank: int, size: int) -> dict[str, range]:
        """Rows of each parameter at a rank of a size, as ``torch.chunk`` cuts them; those without any are left out."""
        found = {}
        for name, shape in self._shapes.items():
            each = -(-shape[0] // size)
            rows = range(min(each * rank, shape[0]), min(each * (rank + 1), shape[0]))
            if rows and all(shape):
                found[name] = rows
        return found

    def shape(self, name: str, rows: range) -> tuple[int, ...]:
        return (len(rows), *self._shapes[name][1:])

    def sources(self, target: int, *, old: int, new: int) -> list[int]:
        return [one for one in range(old) if one == target % old or self.between(one, target, old=old, new=new)]

    def between(self, source: int, target: int, *, old: int, new: int) -> dict[str, range]:
        """Rows that a rank of the old size has, and one of the new size needs."""
        need, found = self.held(target, new), {}
        for name, rows in self.held(source, old).items():
            needed = need.get(name, range(0))
            if common := range(max(rows.start, needed.start), min(rows.stop, needed.stop)):
                found[name] = common
        return found


def taken_out(part: Part, rows: Rows, *, target: int, size: int) -> Flat:
    own = rows.held(part.rank, part.size)
    cut: dict[str, list[str]] = {name: [] for name in own}
    whole: list[str] = []
    for name, tensor in part.tensors.items():
        of = _parameter_of(name)
        mine = own.get(of)
        if mine is not None and tuple(tensor.shape) == rows.shape(of, mine):
            cut[of].append(name)
        elif name.startswith(STATE) or not (name.startswith(PARAMETER) or (tensor.dim() and tensor.numel() == 0)):
            whole.append(name)
    listed: list[list[Any]] = []
    tensors = []
    for of, given in rows.between(part.rank, target, old=part.size, new=size).items():
        for name in cut[of]:
            listed.append([name, given.start])
            tensors.append(part.tensors[name].narrow(0, given.start - own[of].start, len(given)))
    if target % part.size == part.rank:
        tensors += [part.tensors[name] for name in whole]
        tensors.append(torch.frombuffer(bytearray(part.extra), dtype=torch.uint8))
    else:
        whole = []
    return Flat(skeleton={"rows": listed, "whole": whole}, tensors=tensors)


@torch.no_grad()
def put_in(
    flat: Flat, rows: Rows, *, rank: int, size: int, model: nn.Module, optimizer: torch.optim.Optimizer
) -> tuple[bytes, dict[str, Tensor]] | None:
    own, parameters = rows.held(rank, size), dict(model.named_parameters())
    listed, whole = flat.skeleton["rows"], flat.skeleton["whole"]
    for (name, row), values in zip(listed, flat.tensors, strict=False):
        of = _parameter_of(name)
        place = _place(name, parameters[of], optimizer, dtype=values.dtype)
        place.narrow(0, row - own[of].start, values.shape[0]).copy_(values)
    buffers, state = {}, {}
    rest = flat.tensors[len(listed) :]
    for name, values in zip(whole, rest, strict=False):
        if name.startswith(BUFFER):
            buffers[name.removeprefix(BUFFER)] = values
        elif name.startswith(STATE):
            state[name] = values
        else:
            key, _, of = name.removeprefix(OPTIMIZER).partition(" ")
            kept = optimizer.state[parameters[of]]
            kept[key] = kept[key].copy_(values) if key in kept else values.clone()
    if len(rest) == len(whole):
        return None
    put_buffers(model, buffers)
    return rest[-1].numpy().tobytes(), state


@torch.no_grad()
def complete(model: nn.Module, optimizer: torch.optim.Optimizer, extra: bytes) -> None:
    state = torch.load(io.BytesIO(extra), weights_only=True)
    put_groups(model, optimizer, state["groups"])
    keys = {key for kept in optimizer.state.values() for key, value in kept.items() if isinstance(value, DTensor)}
    for name, parameter in model.named_parameters():
        kept = optimizer.state[parameter] if keys or state["values"][name] else {}
        for key in keys - kept.keys():
            kept[key] = torch.zeros_like(parameter)
        kept.update(state["values"][name])


def check_cut(model: nn.Module) -> None:
    for name, parameter in model.named_parameters():
        if not _is_cut_by_rows(parameter):
            raise UnsupportedError(
                f"parameter {name} is not cut by rows over a mesh of one dimension, so the job keeps its size; shard "
                "the whole model with fully_shard over all ranks, or leave out --sizes and --nnodes MIN:MAX"
            )


def is_cut_by_rows(model: nn.Module) -> bool:
    return all(map(_is_cut_by_rows, model.parameters()))


def _is_cut_by_rows(parameter: nn.Parameter) -> bool:
    mesh = getattr(parameter, "device_mesh", None)
    placements = getattr(parameter, "placements", ())
    one = mesh is not None and mesh.ndim == 1 and mesh._get_root_mesh().ndim == 1
    return one and [getattr(each, "dim", None) for each in placements] == [0]


def _parameter_of(name: str) -> str:
    if name.startswith(OPTIMIZER):
        return name.removeprefix(OPTIMIZER).partition(" ")[2]
    return name.removeprefix(PARAMETER)


def _place(name: str, parameter: Tensor, optimizer: torch.optim.Optimizer, *, dtype: torch.dtype) -> Tensor:
    if name.startswith(PARAMETER):
        return local(parameter)
    key = name.removeprefix(OPTIMIZER).partition(" ")[0]
    kept = optimizer.state[parameter]
    if key not in kept:
        kept[key] = torch.zeros_like(parameter, dtype=dtype)
    return local(kept[key])
