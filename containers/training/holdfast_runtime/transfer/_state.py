"""A tree of values with tensors in it, as a skeleton and a list of tensors; and the bytes of a tensor."""

import io
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

MARK = "holdfast tensor"


@dataclass(frozen=True)
class Flat:
    """A tree in two parts. In the skeleton, each tensor is a mark with its place in the list."""

    skeleton: Any
    tensors: list[Tensor]

    def skeleton_bytes(self) -> bytes:
        """What ``read_skeleton`` takes."""
        buffer = io.BytesIO()
        torch.save(self.skeleton, buffer)
        return buffer.getvalue()


def read_skeleton(data: bytes) -> Any:
    """A skeleton from its bytes. Nothing in it is executed: a class that torch does not know as safe is refused."""
    return torch.load(io.BytesIO(data), weights_only=True)


def flatten(tree: Any) -> Flat:
    """Take the tensors out of dicts, lists and tuples, in the order of the tree."""
    tensors: list[Tensor] = []

    def take(value: Any) -> Any:
        if isinstance(value, Tensor):
            tensors.append(value.detach())
            return (MARK, len(tensors) - 1)
        if isinstance(value, dict):
            return {key: take(item) for key, item in value.items()}
        if isinstance(value, (list, tuple)):
            return type(value)(take(item) for item in value)
        return value

    skeleton = take(tree)
    return Flat(skeleton=skeleton, tensors=tensors)


def unflatten(flat: Flat) -> Any:
    """The tree again."""

    def put(value: Any) -> Any:
        if isinstance(value, tuple) and len(value) == 2 and value[0] == MARK:
            return flat.tensors[value[1]]
        if isinstance(value, dict):
            return {key: put(item) for key, item in value.items()}
        if isinstance(value, (list, tuple)):
            return type(value)(put(item) for item in value)
        return value

    return put(flat.skeleton)


def tensor_bytes(tensor: Tensor) -> memoryview:
    """The bytes of a tensor; of the tensor itself where it is contiguous in host memory, else of a copy."""
    host = tensor.detach().to("cpu").contiguous()
    if host.numel() == 0:
        return memoryview(b"")
    data: Any = host.reshape(-1).view(torch.uint8).numpy()
    return memoryview(data)


def is_direct(tensor: Tensor) -> bool:
    """Whether bytes can be received into the tensor itself."""
    return tensor.device.type == "cpu" and tensor.is_contiguous()
