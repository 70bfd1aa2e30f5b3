"""
Adds up gradients over all ranks while backward still runs.

The buckets are laid out once, from the order and the sizes of the parameters, and every rank reduces them in the same
order for ever. DistributedDataParallel lays them out again after its first backward, so a group that is rebuilt there
adds in another order, and the bits change without any fault.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn

from holdfast_runtime.groups import UnsupportedError

BUCKET_BYTES = 25 << 20


@dataclass
class Bucket:
    """Gradients that are reduced together."""

    parameters: list[nn.Parameter]
    flat: Tensor = field(default_factory=lambda: torch.empty(0))
    views: list[Tensor] = field(default_factory=list)
    missing: int = 0
    """Gradients of this backward that are still to come."""
    work: Any = None
    """The collective, once it has begun."""
    version: int = 0
    """Of ``flat``, after what was written to it here."""
    arrived: set[int] = field(default_factory=set)
    empty: set[int] = field(default_factory=set)
    """Those of them that have no gradient on this rank."""


class Reducer:
    """
    Hooks on the parameters of a model.

    Args:
        tail: Numbers of 32 bits that go with the last bucket.
        on_gradient: Called with each gradient of a backward. May raise, which ends the backward.
        on_bucket: Called with a bucket's number before its collective begins. May raise.
        wait: For a collective to end. Default: for as long as it takes.
    """

    def __init__(
        self,
        parameters: Sequence[nn.Parameter],
        *,
        tail: int,
        bucket_bytes: int = BUCKET_BYTES,
        on_gradient: Callable[[], None] = lambda: None,
        on_bucket: Callable[[int], None] = lambda _number: None,
        wait: Callable[[Any], object] = lambda work: work.wait(),
    ) -> None:
        trained = [parameter for parameter in parameters if parameter.requires_grad]
        self._on_gradient = on_gradient
        self._on_bucket = on_bucket
        self._wait = wait
        self._layout = layout(trained, bucket_bytes=bucket_bytes)
        self._device = trained[0].device if trained else torch.device("cpu")
        # The tail goes in the memory of the last bucket where that is of its type, so it costs no collective.
        self._own_tail = not trained or self._layout[-1][0].dtype != torch.float32
        self._tail_length = tail
        self._trained = [parameter for group in self._layout for parameter in group]
        self._buckets: list[Bucket] = []
        self.renew()
        self._works: list[Any] = []
        self._next = 0
        self._scale = 1.0
        self._active = False
        self._syncing = True
        for number, bucket in enumerate(self._buckets):
            for index, parameter in enumerate(bucket.parameters):
                register: Any = parameter.register_post_accumulate_grad_hook
                register(self._hook(number, index))

    def renew(self) -> None:
        """Take new memory: a collective that could not be ended may still write to what there was."""
        length = self._tail_length + len(self._trained)
        spare = [0] * (len(self._layout) - 1) + [0 if self._own_tail else length]
        flats = [_flat(group, more=more) for group, more in zip(self._layout, spare, strict=False)]
        if self._own_tail:
            numbers = torch.zeros(length, dtype=torch.float32, device=self._device)
        else:
            numbers = flats[-1][-length:]
        self._numbers, count = numbers, len(self._trained)
        self._used, self.tail = numbers[:count], numbers[count:]
        if not self._buckets:
            self._buckets = [Bucket(parameters=group) for group in self._layout]
        for bucket, flat in zip(self._buckets, flats, strict=True):
            bucket.flat, bucket.views = flat, _views(flat, bucket.parameters)

    @property
    def buckets(self) -> int:
        return len(self._buckets)

    def begin(self, *, world_size: int) -> None:
        """Forget all gradients; those of the next backward are reduced over so many ranks."""
        self._active = world_size > 1
        self._scale = 1.0 / world_size
        self._next = 0
        self._works = []
        for bucket in self._buckets:
            bucket.missing = len(bucket.parameters)
            bucket.work, bucket.version = None, bucket.flat._version
            bucket.arrived.clear()
            bucket.empty.clear()
            for parameter in bucket.parameters:
                parameter.grad = None

    def zero(self) -> None:
        for bucket in self._buckets:
            for index, parameter in enumerate(bucket.parameters):
                parameter.grad = None
                self._adopt(bucket, index, parameter)

    @contextmanager
    def no_sync(self) -> Iterator[None]:
        self._syncing = False
        try:
            yield
        finally:
            self._syncing = True

    def check_unchanged(self) -> None:
        """Raise UnsupportedError where the program has changed a gradient that is being reduced."""
        for bucket in self._buckets if self._active else ():
            kept = all(bucket.parameters[index].grad is bucket.views[index] for index in bucket.arrived)
            if not kept or bucket.flat._version != bucket.version:
                raise UnsupportedError(
                    "gradients were changed between backward and step.reduce, where each rank has its own and they are "
                    "being reduced; allowed: between step.reduce and step.update; call step.reduce(loss) after "
                    "backward, then clip_grad_norm_ or scaler.unscale_, then step.update()"
                )

    def finish(self, *, from_first: Tensor | None = None) -> None:
        """
        Reduce what has not been, the tail last, and wait.

        Args:
            from_first: Becomes rank 0's on all ranks. Default: nothing.

        Raises:
            RuntimeError: a rank is gone.
        """
        if not self._active:
            return
        for bucket in self._buckets[self._next :]:
            for index, parameter in enumerate(bucket.parameters):
                if index not in bucket.arrived:
                    self._adopt(bucket, index, parameter)
        used = [index not in bucket.empty for bucket in self._buckets for index in range(len(bucket.parameters))]
        self._used.copy_(self._used.new_tensor(used))
        self._launch(len(self._buckets))
        if self._own_tail:
            self._works.append(dist.all_reduce(self._numbers, async_op=True))
        if from_first is not None:
            self._works.append(dist.broadcast(from_first, src=0, async_op=True))
        for work in self._works:
            self._wait(work)
        self._active = False
        if not all(used):
            for parameter, ranks in zip(self._trained, self._used.tolist(), strict=True):
                if not ranks:  # no rank has one: DistributedDataParallel leaves None there, which optimizers pass over
                    parameter.grad = None

    def _hook(self, number: int, index: int) -> Callable[[Tensor], None]:
        bucket = self._buckets[number]
        parameter = bucket.parameters[index]
        last = len(self._buckets) - 1

        def arrived(_tensor: Tensor) -> None:
            if not (self._active and self._syncing):
                return
            if index in bucket.arrived:
                raise RuntimeError(
                    "a second backward of this step: its gradients are being added up over the ranks already. Put each "
                    "backward but the last in `with step.accumulate():`; of two networks, as those of a GAN, train one "
                    "in each step, with one optimizer"
                )
            self._on_gradient()
            self._adopt(bucket, index, parameter)
            bucket.missing -= 1
            # The last bucket waits for the step's vote.
            if bucket.missing == 0 and number == self._next and number < last:
                until = number + 1
                while until < last and self._buckets[until].missing == 0:
                    until += 1
                self._launch(until)

        return arrived

    def _adopt(self, bucket: Bucket, index: int, parameter: nn.Parameter) -> None:
        view, before = bucket.views[index], bucket.flat._version
        bucket.arrived.add(index)
        if parameter.grad is None:
            bucket.empty.add(index)
            view.zero_()
        else:
            torch.mul(parameter.grad, self._scale, out=view)
        bucket.version += bucket.flat._version - before
        parameter.grad = view

    def _launch(self, until: int) -> None:
        while self._next < until:
            number = self._next
            self._on_bucket(number)
            self._next += 1
            self._works.append(dist.all_reduce(self._buckets[number].flat, async_op=True))


def layout(parameters: Sequence[nn.Parameter], *, bucket_bytes: int) -> list[list[nn.Parameter]]:
    groups: list[list[nn.Parameter]] = []
    size = 0
    for parameter in reversed(parameters):
        own = parameter.numel() * parameter.element_size()
        same = groups and (groups[-1][-1].dtype, groups[-1][-1].device) == (parameter.dtype, parameter.device)
        if not same or size + own > bucket_bytes:
            groups.append([])
            size = 0
        groups[-1].append(parameter)
        size += own
    return groups


def _flat(parameters: Sequence[nn.Parameter], *, more: int) -> Tensor:
    count = sum(parameter.numel() for parameter in parameters) + more
    return torch.zeros(count, dtype=parameters[0].dtype, device=parameters[0].device)


def _views(flat: Tensor, parameters: Sequence[nn.Parameter]) -> list[Tensor]:
    views, start = [], 0
    for parameter in parameters:
        views.append(flat[start : start + parameter.numel()].view(parameter.shape))
        start += parameter.numel()
    return views
