"""Buffers of replicas: which of them some rank has changed, and their way from the first rank to all others."""

import json
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

Wait = Callable[[Any], object]


class SharedBuffers:
    """
    The buffers of a model that all ranks have.

    Args:
        changed: Returns the names of all, and which are not as they were when the step began.
        wait: For a collective to end; raises when a rank is lost.
    """

    def __init__(
        self,
        *,
        buffers: Callable[[], dict[str, Tensor]],
        changed: Callable[[], list[tuple[str, bool]]],
        put: Callable[[Mapping[str, Tensor]], None],
        wait: Wait,
    ) -> None:
        self._buffers = buffers
        self._changed = changed
        self._put = put
        self._wait = wait
        self._known: dict[str, bool] = {}
        """Names of those that all ranks have, and whether they came in the last step."""

    def begin_generation(self) -> None:
        self._known = dict.fromkeys(self._buffers(), False)

    def layout(self) -> int:
        """Return a digest of the names, types and shapes; 32 bits."""
        listed = [(name, str(buffer.dtype), tuple(buffer.shape)) for name, buffer in self._buffers().items()]
        return zlib.crc32(repr(listed).encode()) if listed else 0

    def to_send(self, smallest: Callable[[Sequence[int]], Sequence[int]]) -> list[Tensor]:
        """
        Return the buffers that some rank has changed in this step, the same ones on all ranks, in their order.

        Where ranks have buffers of other names, types or shapes, they get those of the first rank at once.
        """
        if not self._known:
            return []
        layout, changed = self.layout(), dict(self._changed())
        flags = [changed.get(name, True) or new for name, new in self._known.items()]
        least = smallest((layout, -layout, *(-int(flag) for flag in flags)))
        if least[0] != -least[1]:
            self._put(_from_first(self._buffers(), wait=self._wait))
            return []
        quiet = {name for name, flag in zip(self._known, least[2:], strict=True) if not flag}
        return [buffer for name, buffer in self._buffers().items() if name not in quiet]

    def end_step(self) -> None:
        self._known = {name: name not in self._known for name in self._buffers()}


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


def _from_first(buffers: Mapping[str, Tensor], *, wait: Wait) -> dict[str, Tensor]:
    """Return all buffers of rank 0, where ranks have other ones. A collective."""
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
