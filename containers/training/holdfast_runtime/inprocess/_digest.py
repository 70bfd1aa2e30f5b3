"""A short number for many tensors: equal numbers for equal bytes."""

import zlib
from collections.abc import Iterable

import torch
from torch import Tensor

from holdfast_runtime.transfer import tensor_bytes

BITS = 32


def digest_of(tensors: Iterable[Tensor]) -> int:
    """
    Of the bytes of tensors in their order; 32 bits.

    On the host it is a CRC. On a GPU each tensor is reduced there, by a weighted sum of its bytes as 64-bit words, and
    only the results come to the host.
    """
    total = 0
    device: list[Tensor] = []
    for tensor in tensors:
        if tensor.device.type == "cpu":
            total = zlib.crc32(tensor_bytes(tensor), total)
        else:
            device.append(_weighted_sum(tensor))
    if device:
        total = zlib.crc32(tensor_bytes(torch.stack(device)), total)
    return total


def _weighted_sum(tensor: Tensor) -> Tensor:
    """Wraps around in 64 bits, so any order of summation gives the same."""
    data = tensor.detach().contiguous().reshape(-1).view(torch.uint8)
    words = data.to(torch.int64)
    weights = torch.arange(1, words.numel() + 1, device=words.device, dtype=torch.int64)
    return (words * (weights * 2654435761 | 1)).sum()
