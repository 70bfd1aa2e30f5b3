"""
A step of a fixed number of logical ranks, by whatever number of ranks there is: the same bits with any.

In round r, rank p of P does the batch of logical rank r * P + p. Gradients of a layer go to the owners of its rows
unreduced, as many bytes as a reduce-scatter, and each owner adds them in the order of the logical ranks, in one sum
that goes on over the rounds. So where the rows are and how many ranks there are does not change a bit.
"""

import operator
from collections.abc import Callable
from functools import reduce
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

Wait = Callable[[Any], object]


class Rounds:
    """Position within a step."""

    def __init__(self, logical: int) -> None:
        self.logical = logical
        self.size, self.rank, self.number = 1, 0, 0
        self.done = False
        """Whether all rounds of the running step were done."""
        self.losses: dict[int, float] = {}
        """By logical rank, of those that were this rank's in the running step."""
        self._sums: list[OrderedReduceScatter] = []

    def begin(self, *, rank: int, size: int) -> None:
        self.rank, self.size, self.number = rank, size, 0
        self.losses, self.done = {}, False
        for each in self._sums:
            each.total = None

    @property
    def count(self) -> int:
        return -(-self.logical // self.size)

    @property
    def last(self) -> bool:
        return self.number == self.count - 1

    @property
    def present(self) -> int:
        return min(self.size, self.logical - self.number * self.size)

    @property
    def mine(self) -> int:
        return min(self.number * self.size + self.rank, self.logical - 1)

    @property
    def counts(self) -> bool:
        return self.rank < self.present

    def note(self, loss: float) -> None:
        if self.counts:
            self.losses[self.mine] = loss

    def mean_loss(self, *, wait: Wait) -> float:
        """
        Of all logical ranks, added in their order. A collective.

        Raises:
            RuntimeError: the step has not done its rounds.
        """
        if not self.done:
            raise RuntimeError(
                f"the step of {self.logical} logical ranks has not done all of them; go over them with "
                "`for part in step.parts():` and call step.backward(loss) in each"
            )
        losses = torch.zeros(self.logical, dtype=torch.float64)
        for logical, loss in self.losses.items():
            losses[logical] = loss
        if self.size > 1:
            wait(dist.all_reduce(losses, async_op=True))  # every place has one number and zeros: exact in any order
        # Not sum(), which rounds in another way since Python 3.12: nodes may have different ones.
        return reduce(operator.add, losses.tolist(), 0.0) / self.logical

    def reduce_scatter(self) -> "OrderedReduceScatter":
        made = OrderedReduceScatter(self)
        self._sums.append(made)
        return made


class OrderedReduceScatter:
    """For ``FSDPModule.set_custom_reduce_scatter``: the sum of a step's rounds, by logical ranks."""

    def __init__(self, rounds: Rounds) -> None:
        self.total: Tensor | None = None
        self._rounds = rounds

    def allocate(self, size: Any, *, dtype: torch.dtype, device: torch.device) -> Tensor:
        return torch.empty(*size, dtype=dtype, device=device)

    def __call__(
        self,
        output_tensor: Tensor,
        input_tensor: Tensor,
        group: Any,
        op: Any,  # noqa: ARG002 - always a sum
        async_op: bool = False,  # noqa: ARG002, FBT001, FBT002 - as torch calls it; the sum is done here
    ) -> None:
        """Exchange the parts of this round and add them up; the sum comes out in the last one."""
        rounds = self._rounds
        arrived = torch.empty_like(input_tensor)
        dist.all_to_all_single(arrived, input_tensor, group=group)
        for part in arrived.view(rounds.size, -1)[: rounds.present]:
            self.total = part.clone() if self.total is None else self.total.add_(part)
        if rounds.last:
            assert self.total is not None
            output_tensor.copy_(self.total.view_as(output_tensor))
            self.total = None
