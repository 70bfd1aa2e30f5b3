"""Buffers of replicas on the way from the first rank to all others."""

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor


def packed(tensors: Iterable[Tensor]) -> Tensor:
    """Return the bytes of tensors of any types, one after the other."""
    return torch.cat([tensor.detach().reshape(-1).view(torch.uint8) for tensor in tensors])


@torch.no_grad()
def unpack(data: Tensor, tensors: Iterable[Tensor]) -> None:
    """Put the bytes of ``packed`` into tensors of the same types and shapes."""
    start = 0
    for tensor in tensors:
        size = tensor.numel() * tensor.element_size()
        # A copy of its own begins where any type may begin.
        tensor.copy_(data[start : start + size].clone().view(tensor.dtype).view(tensor.shape))
        start += size


def shared_from_first(buffers: Mapping[str, Tensor], *, wait: Callable[[Any], object]) -> dict[str, Tensor]:
    """
    Return all buffers of rank 0, where ranks have other ones. A collective.

    Args:
        buffers: Of this rank, by name.
        wait: For a collective to end; raises when a rank is lost.
    """
    device = next((buffer.device for buffer in buffers.values()), torch.device("cpu"))
    first = dist.get_rank() == 0
    listed = [[name, str(buffer.dtype).removeprefix("torch."), [*buffer.shape]] for name, buffer in buffers.items()]
    header = torch.tensor([*json.dumps(listed).encode()], dtype=torch.uint8, device=device)
    length = torch.tensor([len(header)], device=device)
    wait(dist.broadcast(length, src=0, async_op=True))
    header = header if first else header.new_empty(int(length))
    wait(dist.broadcast(header, src=0, async_op=True))
    listed = json.loads(bytes(header.tolist()))
    places = {name: torch.empty(shape, dtype=getattr(torch, kind), device=device) for name, kind, shape in listed}
    data = packed((buffers if first else places).values())
    wait(dist.broadcast(data, src=0, async_op=True))
    unpack(data, places.values())
    return places
