"""Vote of all ranks, in place of ``Reducer`` if the model's own layout adds up gradients."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn


class Ballot:
    """
    The vote of a sharded job.

    Args:
        length: Numbers of 32 bits in a vote.
    """

    def __init__(self, parameters: Sequence[nn.Parameter], *, length: int, wait: Callable[[Any], object]) -> None:
        self.tail = torch.zeros(length, dtype=torch.float32)
        self._parameters = list(parameters)
        self._wait = wait
        self._cuda = any(parameter.is_cuda for parameter in self._parameters)
        self._active = False

    def renew(self) -> None:
        """Take new memory: a collective that could not be ended may still write to what there was."""
        self.tail = torch.zeros_like(self.tail)

    def begin(self, *, world_size: int) -> None:
        """Forget all gradients."""
        self._active = world_size > 1
        for parameter in self._parameters:
            parameter.grad = None

    @contextmanager
    def no_sync(self) -> Iterator[None]:
        yield

    def check_unchanged(self) -> None:
        """Gradients are whole after backward: the program may change them."""

    def settle(self) -> bool:
        """Wait for the GPU. Returns False where the model is on the host."""
        if self._cuda:
            torch.cuda.synchronize()
        return self._cuda

    def finish(self, *, from_first: Tensor | None = None) -> None:
        """Add up the votes. Raises RuntimeError when a rank is gone."""
        assert from_first is None
        if self._active:
            self._wait(dist.all_reduce(self.tail, async_op=True))
        self._active = False


def gathered(number: int, *, world_size: int, wait: Callable[[Any], object]) -> list[int]:
    """A number of each rank, by rank. Raises what ``wait`` does when a rank is gone."""
    found = [torch.zeros(1, dtype=torch.int64) for _ in range(world_size)]
    wait(dist.all_gather(found, torch.tensor([number]), async_op=True))
    return [int(each) for each in found]


def gathered_bytes(data: bytes, *, wait: Callable[[Any], object]) -> list[bytes]:
    """Return the bytes of each rank, by rank. Raises what ``wait`` does when a rank is lost."""
    size = dist.get_world_size()
    nccl = dist.get_backend() == "nccl"
    device = torch.device("cuda") if nccl else torch.device("cpu")
    lengths = [torch.zeros(1, dtype=torch.int64, device=device) for _ in range(size)]
    wait(dist.all_gather(lengths, torch.tensor([len(data)], device=device), async_op=True))
    most = max(1, *(int(length) for length in lengths))
    own = torch.frombuffer(bytearray(data.ljust(most, b"\0")), dtype=torch.uint8).to(device)
    found = [torch.zeros_like(own) for _ in range(size)]
    wait(dist.all_gather(found, own, async_op=True))
    return [each[: int(length)].cpu().numpy().tobytes() for each, length in zip(found, lengths, strict=True)]
