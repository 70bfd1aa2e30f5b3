"""Rows "buffers" and "extra state": changed in all the ways that modules change them."""

from typing import Any

import torch
from forms.form import NAMED, SAME, THIN, Form, add, at_place, once_at
from loop import HERE, HIDDEN, WIDTH, Net, samples
from torch import Tensor, nn

WORDS = r"buffer|mean|inner|middle|norm|mask|cache|count"


class Mean(nn.Module):
    """Takes a running mean off its input; a subclass says how the mean is changed."""

    mean: Tensor
    var: Tensor
    persistent = True

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("mean", torch.zeros(WIDTH), persistent=self.persistent)
        self.register_buffer("var", torch.ones(WIDTH))

    def change(self, mean: Tensor, values: Tensor) -> None:
        self.mean.lerp_(mean, 0.1)

    def forward(self, values: Tensor) -> Tensor:
        if self.training:
            self.change(values.detach().mean(0), values.detach())
        return values - self.mean


class InPlace(Mean):
    pass


class NotPersistent(Mean):
    persistent = False


class ByData(Mean):
    def change(self, mean: Tensor, values: Tensor) -> None:
        self.mean.data.lerp_(mean, 0.1)


class Functional(Mean):
    def change(self, mean: Tensor, values: Tensor) -> None:
        nn.functional.batch_norm(values, self.mean, self.var, training=True)


class Assigned(Mean):
    def change(self, mean: Tensor, values: Tensor) -> None:
        self.mean = torch.lerp(self.mean, mean, 0.1)


class Conditional(Mean):
    """Changed only where this rank's data ask for it."""

    def change(self, mean: Tensor, values: Tensor) -> None:
        if mean[0] > 0:
            self.mean.lerp_(mean, 0.1)


class ConditionalByData(Mean):
    def change(self, mean: Tensor, values: Tensor) -> None:
        if mean[0] > 0:
            self.mean.data.lerp_(mean, 0.1)


class Late(Mean):
    """A mask that is registered at step 5."""

    mask: Tensor

    def forward(self, values: Tensor) -> Tensor:
        if HERE.number >= 5 and not hasattr(self, "mask"):
            self.register_buffer("mask", (torch.arange(WIDTH) > 3).float())
        return values * self.mask if HERE.number >= 5 else values


class Grown(Mean):
    """A cache that grows, and is read."""

    cache: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("cache", torch.ones(4), persistent=False)

    def forward(self, values: Tensor) -> Tensor:
        length = 4 + HERE.number // 4
        while self.cache.shape[0] < length:
            self.cache = torch.cat([self.cache, self.cache[-1:] * 0.9])
        return values * self.cache.mean()


class Whole(Mean):
    """A whole number and a flag."""

    count: Tensor
    warm: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("count", torch.zeros((), dtype=torch.int64))
        self.register_buffer("warm", torch.zeros((), dtype=torch.bool))

    def forward(self, values: Tensor) -> Tensor:
        if self.training:
            self.count += 1
            self.warm |= self.count > 6
        return values / (1 + 0.1 * self.count) + self.warm


class Large(Mean):
    """More numbers than are copied in each step without a reason."""

    bank: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("bank", torch.zeros(70_000))

    def forward(self, values: Tensor) -> Tensor:
        if self.training:
            self.bank.data[:WIDTH].lerp_(values.detach().mean(0), 0.1)
        return values - self.bank[:WIDTH]


class Noise(Mean):
    """Filled with numbers of the default generator."""

    def change(self, mean: Tensor, values: Tensor) -> None:
        self.mean.copy_(0.9 * self.mean + 0.1 * torch.randn(WIDTH))


class Emptied(Mean):
    """A buffer that becomes None, and one that is deleted."""

    def forward(self, values: Tensor) -> Tensor:
        if HERE.number == 5 and self.mean is not None:
            self.mean = None  # type: ignore[assignment]
        return values - (self.mean + 0.3 if self.mean is not None else 0.0)


class Extra(nn.Module):
    """State that is no tensor, in ``get_extra_state``."""

    def __init__(self) -> None:
        super().__init__()
        self._own = {"seen": 0.0}

    def get_extra_state(self) -> dict[str, float]:
        return dict(self._own)

    def set_extra_state(self, state: dict[str, float]) -> None:
        self._own = dict(state)

    def grow(self) -> None:
        self._own["seen"] += 0.1

    def forward(self, values: Tensor) -> Tensor:
        if HERE.place == "forward":
            self.grow()
        return values * (1 + self._own["seen"])


class ExtraByHand(Extra):
    """Changed by the loop."""

    def forward(self, values: Tensor) -> Tensor:
        return values * (1 + self._own["seen"])


def with_inner(kind: type[nn.Module]) -> Any:
    return type(f"With{kind.__name__}", (Form,), {"model": lambda _: Net(inner=kind())})


for kind, name, verdict in (
    (InPlace, "in_place", SAME),
    (NotPersistent, "not_persistent", SAME),
    (ByData, "data", SAME),
    (Functional, "functional", SAME),
    (Assigned, "assigned", SAME),
    (Conditional, "conditional", NAMED),
    (ConditionalByData, "conditional_data", NAMED),
    (Late, "late", NAMED),
    (Grown, "grown", NAMED),
    (Whole, "whole", SAME),
    (Large, "large", SAME),
    (Noise, "noise", SAME),
    (Emptied, "emptied", NAMED),
):
    add(f"buffers.{name}", with_inner(kind), row="buffers", words=WORDS, verdict=verdict)


class Twice(Form):
    """Two forwards in a step."""

    def model(self) -> nn.Module:
        return Net(inner=Assigned())

    def top(self, number: int) -> None:
        HERE.model.inner(samples(number, HERE.run.data_rank))


class WasInEval(Form):
    """The model was in evaluation mode when ``Run`` was made, as ``from_pretrained`` gives it."""

    def model(self) -> nn.Module:
        return Net(norm=True).eval()

    def ready(self) -> None:
        HERE.model.train()


class Spectral(Form):
    def model(self) -> nn.Module:
        layer = nn.utils.parametrizations.spectral_norm(nn.Linear(HIDDEN, HIDDEN))
        return Net(middle=layer)


class InstanceNorm(Form):
    def model(self) -> nn.Module:
        return Net(middle=nn.Sequential(nn.BatchNorm1d(HIDDEN, momentum=None), nn.GELU()))


def by_hand(form: Form, number: int) -> None:
    HERE.model.inner.mean.add_(0.01)


def by_hand_data(form: Form, number: int) -> None:
    HERE.model.inner.mean.data.add_(0.01)


class Plain(Mean):
    """Changed by the loop only."""

    def forward(self, values: Tensor) -> Tensor:
        return values - self.mean


def registered(form: Form) -> None:
    HERE.model.inner.register_buffer("later", torch.full((WIDTH,), 0.5))
    HERE.model.inner.mean.add_(0.1)


add("buffers.twice", Twice, row="buffers", words=WORDS)
add("buffers.was_in_eval", WasInEval, row="buffers", words=WORDS)
add("buffers.spectral", Spectral, row="buffers", words=WORDS + "|_u|_v", verdict=NAMED)
add("buffers.cumulative_norm", InstanceNorm, row="buffers", words=WORDS)
for where in ("top", "before", "after", "between", "after_update"):
    shape: dict[str, Any] = {"row": "buffers", "words": WORDS, "changes_after": where == "after"}
    add(f"buffers.hand.{where}", at_place(where, by_hand, with_inner(Plain)), **shape)
    add(f"buffers.hand_data.{where}", at_place(where, by_hand_data, with_inner(Plain)), **{**shape, "places": THIN})
for where in ("top", "after", "between"):
    add(
        f"buffers.registered.{where}",
        at_place(where, once_at(5, registered), with_inner(Plain)),
        row="buffers",
        words=WORDS + "|later",
        verdict=NAMED,
        changes_after=where == "after",
        places=THIN,
    )


def seen(form: Form) -> Any:
    return HERE.model.inner.get_extra_state()


def grow(form: Form, number: int) -> None:
    HERE.model.inner.grow()


add(
    "extra.forward",
    type("ExtraForm", (Form,), {"model": lambda _: Net(inner=Extra()), "result": seen}),
    row="extra state",
    words="extra|inner|seen",
)
for where in ("top", "before", "after", "between", "after_update"):
    hand: Any = type("ExtraAt", (Form,), {"model": lambda _: Net(inner=ExtraByHand()), "result": seen})
    add(
        f"extra.{where}",
        at_place(where, grow, hand),
        row="extra state",
        words="extra|inner|seen",
        changes_after=where == "after",
    )
