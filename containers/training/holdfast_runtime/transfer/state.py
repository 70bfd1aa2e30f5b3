"""A tree of values with tensors in it, as a skeleton and a list of tensors; and the bytes of a tensor."""

import io
import pickle
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import Tensor

MARK = "holdfast tensor"
ARRAY_MARK = "holdfast array"


@dataclass(frozen=True)
class Flat:
    """A tree in two parts. In the skeleton, each tensor and each NumPy array is a mark with its place in the list."""

    skeleton: Any
    tensors: list[Tensor]

    @cached_property
    def skeleton_bytes(self) -> bytes:
        buffer = io.BytesIO()
        torch.save(self.skeleton, buffer)
        return buffer.getvalue()


def read_skeleton(data: bytes) -> Any:
    """
    A skeleton from its bytes. Nothing in it is executed.

    Raises:
        ValueError: it has something else than plain values in it.
    """
    try:
        return torch.load(io.BytesIO(data), weights_only=True)
    except (pickle.UnpicklingError, RuntimeError, EOFError) as error:
        raise ValueError(f"not plain values: {str(error).splitlines()[0]}") from None


def local(tensor: Tensor) -> Tensor:
    part: Tensor = tensor.to_local() if hasattr(tensor, "to_local") else tensor
    return part.detach()


def flatten(tree: Any) -> Flat:
    """
    Take the tensors and arrays out of dicts, lists and tuples, in the order of the tree.

    They are not copied: a change of the tree's tensors is one of these. Of a DTensor it is what this rank holds.
    """
    tensors: list[Tensor] = []

    def take(value: Any) -> Any:
        if isinstance(value, Tensor):
            tensors.append(local(value))
            return (MARK, len(tensors) - 1)
        if isinstance(value, np.ndarray):
            tensors.append(torch.from_numpy(np.ascontiguousarray(value)))
            return (ARRAY_MARK, len(tensors) - 1, list(value.shape))
        if isinstance(value, np.generic):
            return value.item()
        return _map(value, take)

    skeleton = take(tree)
    return Flat(skeleton=skeleton, tensors=tensors)


def unflatten(flat: Flat) -> Any:
    def put(value: Any) -> Any:
        if isinstance(value, tuple) and len(value) == 2 and value[0] == MARK:
            return flat.tensors[value[1]]
        if isinstance(value, tuple) and len(value) == 3 and value[0] == ARRAY_MARK:
            return flat.tensors[value[1]].numpy().reshape(value[2])
        return _map(value, put)

    return put(flat.skeleton)


def _map(value: Any, change: Callable[[Any], Any]) -> Any:
    if isinstance(value, dict):
        return {key: change(item) for key, item in value.items()}
    if isinstance(value, tuple):
        return tuple(change(item) for item in value)
    if isinstance(value, list):
        return [change(item) for item in value]
    return value


def tensor_bytes(tensor: Tensor) -> memoryview:
    """The bytes of a tensor; of the tensor itself where it is contiguous in host memory, else of a copy."""
    host = tensor.detach().to("cpu").contiguous()
    if host.numel() == 0:
        return memoryview(b"")
    data: Any = host.reshape(-1).view(torch.uint8).numpy()
    return memoryview(data)


def is_direct(tensor: Tensor) -> bool:
    """Return True if bytes can be received into the tensor itself."""
    return tensor.device.type == "cpu" and tensor.is_contiguous()
