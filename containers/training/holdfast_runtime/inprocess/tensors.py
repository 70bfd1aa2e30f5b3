"""Tensors and values of a training state: compared, copied, sent, and given the layout of their parameter."""

import itertools
import random
import struct
import zlib
from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor, nn

from holdfast_runtime.inprocess.digest import digest_of
from holdfast_runtime.state import Path, copy_into
from holdfast_runtime.transfer import Flat, flatten, local, read_skeleton


class Stateful(Protocol):
    """An object with state that the script may add: a scheduler, a data loader, a counter."""

    def state_dict(self) -> dict[str, Any]: ...
    def load_state_dict(self, state: dict[str, Any], /) -> object: ...


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
    for number, values in sent.items():
        own, parameter = optimizer.state[parameters[number]], parameters[number]
        for name, value in values.items():
            if isinstance(value, Tensor):
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
