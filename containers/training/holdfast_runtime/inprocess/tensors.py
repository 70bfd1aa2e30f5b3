"""Tensors and values of a training state: compared, copied, sent, and given the layout of their parameter."""

import io
import itertools
import random
import struct
import zlib
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from holdfast_runtime.inprocess.digest import digest_of
from holdfast_runtime.inprocess.reduction import packed, unpack
from holdfast_runtime.snapshots import Stateful
from holdfast_runtime.state import Path, copy_into, inner_optimizers, leaves, replaced
from holdfast_runtime.transfer import Flat, flatten, local, read_skeleton, unflatten

MOST_BYTES = 1 << 20
"""Of the values of one rank that are gathered with a vote."""


def version_of(parameter: Tensor) -> tuple[int, int]:
    part = getattr(parameter, "_local_tensor", parameter)
    return part.data_ptr(), part._version


@torch.no_grad()
def put_parameters(parameters: list[nn.Parameter], copies: list[Tensor]) -> None:
    for parameter, copy in zip(parameters, copies, strict=False):
        if not torch.equal(local(parameter), copy):
            local(parameter).copy_(copy)


def same_values(one: Mapping[Path, Any], other: Mapping[Path, Any]) -> bool:
    return one.keys() == other.keys() and all(
        torch.equal(value, other[path]) if isinstance(value, Tensor) else repr(value) == repr(other[path])
        for path, value in one.items()
    )


def packed_values(values: Mapping[Path, Any]) -> bytes:
    """Return values as bytes; empty where they have more than ``MOST_BYTES``."""
    flat, buffer = flatten(values), io.BytesIO()
    if sum(tensor.nbytes for tensor in flat.tensors) > MOST_BYTES:
        return b""
    kinds = [(tensor.dtype, tensor.shape) for tensor in flat.tensors]
    block = packed([torch.empty(0, dtype=torch.uint8), *(tensor.cpu() for tensor in flat.tensors)])
    torch.save((flat.skeleton, kinds, block), buffer)
    return buffer.getvalue() if buffer.tell() <= MOST_BYTES else b""


def read_values(data: bytes) -> dict[Path, Any] | None:
    """Return the values of ``packed_values``; None where there are none."""
    if not data:
        return None
    skeleton, kinds, block = torch.load(io.BytesIO(data), weights_only=True)
    tensors = [torch.empty(shape, dtype=dtype) for dtype, shape in kinds]
    unpack(block, tensors)
    found: dict[Path, Any] = unflatten(Flat(skeleton, tensors))
    return found


def same_buffer(buffer: Tensor, before: Tensor | None) -> bool:
    return (
        before is not None and before.shape == buffer.shape and before.dtype == buffer.dtype and _equal(buffer, before)
    )


def _equal(one: Tensor, other: Tensor) -> bool:
    mine = local(one)
    if torch.equal(mine, other):
        return True
    return digest_of([mine]) == digest_of([other])


def keep_kinds(optimizer: torch.optim.Optimizer, sent: Mapping[int, Mapping[str, Any]]) -> None:
    """
    Torch gives an optimizer's state the type of the parameter when it is loaded; with fewer bits it is another.

    What was sent is what a rank holds; beside a sharded parameter it is sharded as that.
    """
    parameters = [parameter for group in optimizer.param_groups for parameter in group["params"]]
    holders = [optimizer, *inner_optimizers(optimizer)]
    for number, values in sent.items():
        parameter = parameters[number]
        for (name, value), holder in itertools.product(values.items(), holders):
            own = holder.state.get(parameter, {})
            if isinstance(value, Tensor) and name in own:
                kept = value.to(own[name].device) if own[name].dtype != value.dtype else own[name]
                own[name] = like(parameter, kept)


def like(parameter: Tensor, part: Tensor) -> Tensor:
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


def as_held(state: Any, held: Any) -> Any:
    """Return a state whose tensors are sharded as those that are held in the same places."""
    kept = {path: leaf for path, leaf in leaves(held) if hasattr(leaf, "to_local")}
    sharded = {
        path: like(kept[path], leaf)
        for path, leaf in (leaves(state) if kept else ())
        if path in kept and isinstance(leaf, Tensor) and not hasattr(leaf, "to_local")
    }
    return replaced(state, sharded, names=()) if sharded else state


def check_sendable(name: str, item: Stateful) -> None:
    try:
        read_skeleton(flatten(item.state_dict()).skeleton_bytes)
    except (ValueError, TypeError, AttributeError) as error:
        raise ValueError(f"state_dict() of {name} cannot be sent to another process: {error}") from error


def copy_of(flat: Flat, memory: "tuple[Tensor, ...] | list[Tensor]" = ()) -> Flat:
    """
    With copies of all that can change in place, of tensors in the memory of older copies where they fit.

    All are copied: what scripts keep there is often changed through ``.data``, which no version tells.
    """
    pairs = itertools.zip_longest(flat.tensors, memory[: len(flat.tensors)])
    return Flat(skeleton=flat.skeleton, tensors=[copy_into(tensor, old) for tensor, old in pairs])


def seed_generators(*numbers: int) -> None:
    seed = zlib.crc32(struct.pack(f"!{len(numbers)}q", *numbers)) << 32 | zlib.crc32(repr(numbers).encode())
    if torch.accelerator.current_accelerator() is None:
        torch.default_generator.manual_seed(seed)  # a hundredth of the time of the other, which formats its stack
    else:
        torch.manual_seed(seed)
    random.seed(seed)
    np.random.seed(seed & 0xFFFFFFFF)  # the generator that scripts share
