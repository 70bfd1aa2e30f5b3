"""A short number for many tensors: equal numbers for equal bytes."""

from collections.abc import Iterable

import torch
from torch import Tensor

from holdfast_runtime.checksums import checksum_of
from holdfast_runtime.transfer import tensor_bytes

WORD_BYTES = 4
PIECE_WORDS = 1 << 24
FACTOR = 2654435761


def digest_of(tensors: Iterable[Tensor]) -> int:
    """
    Of the bytes of tensors in their order; 32 bits.

    On a GPU each tensor is reduced there, to a weighted sum of its 32-bit words, and only the sums come to the host.
    All weights are odd, so a change of one word is always seen.
    """
    # All sums are begun before the first is waited for.
    found = [tensor if tensor.device.type == "cpu" else weighted_sum(tensor) for tensor in tensors]
    return checksum_of(map(tensor_bytes, found))


def weighted_sum(tensor: Tensor) -> Tensor:
    """Wraps around in 64 bits, so any order of summation gives the same. Takes little memory, whatever the size."""
    data = tensor.detach().contiguous().reshape(-1).view(torch.uint8)
    tail = data.numel() % WORD_BYTES
    body = data[: data.numel() - tail]
    aligned = body.storage_offset() % WORD_BYTES == 0
    words = body.view(torch.int32) if aligned else body.clone().view(torch.int32)
    total = torch.zeros((), dtype=torch.int64, device=data.device)
    start = 0
    for piece in (*torch.split(words, PIECE_WORDS), data[data.numel() - tail :]):
        weights = torch.arange(start + 1, start + 1 + piece.numel(), device=data.device, dtype=torch.int64)
        total += (piece.to(torch.int64) * (weights * FACTOR | 1)).sum()
        start += piece.numel()
    return total
