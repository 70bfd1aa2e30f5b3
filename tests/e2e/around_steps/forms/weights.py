"""Row "parameters": what a loop changes by hand in them, for good or for an evaluation."""

from typing import Any

import torch
from forms.form import NAMED, NEITHER, SAME, THIN, Form, add, at_place, each_epoch, once_at
from loop import HERE, Net, local
from torch import nn

WORDS = r"parameter|weight|bias|first|last"


@torch.no_grad()
def clamp(form: Form, number: int) -> None:
    for part in HERE.parameters():
        part.clamp_(-0.12, 0.12)


@torch.no_grad()
def decay(form: Form, number: int) -> None:
    for part in HERE.parameters():
        part.mul_(0.97)


@torch.no_grad()
def by_data(form: Form, number: int) -> None:
    for parameter in HERE.model.parameters():
        local(parameter.data).mul_(0.97)


@torch.no_grad()
def again(form: Form) -> None:
    """Neurons of a layer begin again, with numbers of torch's default generator."""
    for parameter in HERE.model.first.parameters():
        part = local(parameter).detach()
        part[:2] = 0.1 * torch.randn(part[:2].shape, generator=torch.Generator().manual_seed(HERE.number))


@torch.no_grad()
def by_default_generator(form: Form) -> None:
    for parameter in HERE.model.first.parameters():
        local(parameter).detach().mul_(1 + 0.01 * torch.rand(1).item())


for where in ("top", "before", "after", "between", "guarded", "after_update"):
    early = where in ("top", "before")
    # A step that is left leaves its changes before the update behind: seen, or put back.
    for name, change in (("clamp", clamp), ("decay", decay), ("data", by_data)):
        verdict = NAMED if early or (name == "data" and where == "between") else SAME
        if early and name == "data":  # no version tells of a change by .data: the documented way is without it
            verdict = NEITHER
        add(
            f"weights.{name}.{where}",
            at_place(where, change, Form),
            row="parameters",
            words=WORDS,
            verdict=verdict,
            changes_after=where == "after",
            places=THIN if early or name == "data" else ("top", "forward", *THIN),
            elastic=name == "clamp" and where in ("after", "after_update"),
        )
for where in ("after", "between", "after_update"):
    add(
        f"weights.neurons.{where}",
        at_place(where, each_epoch(again), Form),
        row="parameters",
        words=WORDS,
        changes_after=where == "after",
        places=("backward", "vote", "after", "between", "evaluation", "pause"),
    )
FEW = {"fsdp": "ranks draw other numbers: their parts are their own", "hsdp": "twins draw other numbers"}
add(
    "weights.drawn.after",
    at_place("after", once_at(6, by_default_generator), Form),
    row="random states",
    words=WORDS,
    verdict=NAMED,
    changes_after=True,
    without=FEW,
)


class Swapped(Form):
    """Other weights while the model is evaluated, put back at its end."""

    def swap(self) -> list[torch.Tensor]:
        kept = [part.clone() for part in HERE.parameters()]
        with torch.no_grad():
            for part in HERE.parameters():
                part.mul_(0.5)
        return kept

    def put_back(self, kept: list[torch.Tensor]) -> None:
        with torch.no_grad():
            for part, value in zip(HERE.parameters(), kept, strict=True):
                part.copy_(value)

    def measured(self, number: int) -> None:
        with torch.no_grad():
            value = self.error(number)
        HERE.die("evaluation")
        HERE.run.all_reduce_mean(value)

    def evaluate(self, number: int) -> None:
        kept = self.swap()
        try:
            self.measured(number)
        finally:
            self.put_back(kept)


class NotPutBack(Swapped):
    """Without ``finally``: an evaluation that is left leaves the other weights."""

    def evaluate(self, number: int) -> None:
        kept = self.swap()
        self.measured(number)
        self.put_back(kept)


class Pointers(Swapped):
    """Memory of the parameters is swapped, through ``.data``."""

    def swap(self) -> list[torch.Tensor]:
        parameters = list(HERE.model.parameters())
        kept = [parameter.data for parameter in parameters]
        for parameter in parameters:
            parameter.data = 0.5 * parameter.data
        return kept

    def put_back(self, kept: list[torch.Tensor]) -> None:
        for parameter, value in zip(HERE.model.parameters(), kept, strict=True):
            parameter.data = value


class PointersNotPutBack(Pointers):
    def evaluate(self, number: int) -> None:
        kept = self.swap()
        self.measured(number)
        self.put_back(kept)


class SwappedAtTop(Swapped):
    """In the step, before its forward."""

    def top(self, number: int) -> None:
        if number % 4 == 3:
            super().evaluate(number)

    def evaluate(self, number: int) -> None:
        pass


CUT = "memory of sharded parameters belongs to fully_shard"
add("weights.swapped.finally", Swapped, row="parameters", words=WORDS, changes_after=True)
add("weights.swapped.top", SwappedAtTop, row="parameters", words=WORDS)
add("weights.swapped.left", NotPutBack, row="parameters", words=WORDS, verdict=NAMED, changes_after=True)
add(
    "weights.pointers.finally",
    Pointers,
    row="parameters",
    words=WORDS,
    changes_after=True,
    without={"fsdp": CUT, "hsdp": CUT},
)
add(
    "weights.pointers.left",
    PointersNotPutBack,
    row="parameters",
    words=WORDS,
    verdict=SAME,
    by_place={"evaluation": NEITHER},
    changes_after=True,
    without={"fsdp": CUT, "hsdp": CUT},
)


@torch.no_grad()
def on_rank_1(form: Form) -> None:
    if HERE.run.data_rank == 1:
        HERE.parameters()[0].mul_(0.9)


class Halved(Form):
    """Weights are changed between ``Run`` and the loop, which a newcomer does as well."""

    def ready(self) -> None:
        with torch.no_grad():
            for part in HERE.parameters():
                part.mul_(0.5)


class Target(Form):
    """A target network that follows by hand after each update."""

    def model(self) -> Any:
        net: Any = Net()
        net.target = nn.Linear(16, 16)
        net.target.requires_grad_(False)
        return net

    def units(self, model: Any) -> list[Any]:
        # The outermost module keeps its parameters whole after an evaluation: a part of its own does not.
        return [*super().units(model), model.target]

    def follow(self, number: int) -> None:
        with torch.no_grad():
            for own, other in zip(HERE.model.target.parameters(), HERE.model.last.parameters(), strict=True):
                part, source = local(own).detach(), local(other).detach()
                part.lerp_(source.view(-1)[: part.numel()].view(part.shape), 0.1)

    def loss(self, values: torch.Tensor) -> Any:
        return super().loss(values) + 0.1 * (HERE.model(values) - HERE.model.target(values)).square().mean()


def assigned(form: Form) -> None:
    HERE.model.last.bias = nn.Parameter(HERE.model.last.bias.detach().clone() + 0.5)


add(
    "weights.one_rank.after",
    at_place("after", once_at(6, on_rank_1), Form),
    row="parameters",
    words=WORDS,
    verdict=NAMED,
    changes_after=True,
)
add("weights.before_loop", Halved, row="parameters", words=WORDS + "|loop|Run", verdict=NAMED)
for where in ("after", "between", "after_update"):
    add(
        f"weights.target.{where}",
        at_place(where, Target.follow, Target),
        row="parameters",
        words=WORDS + "|target",
        changes_after=where == "after",
        places=THIN,
    )
add(
    "weights.assigned.top",
    at_place("top", once_at(5, assigned), Form),
    row="parameters",
    words=WORDS,
    verdict=NAMED,
    without={"fsdp": CUT, "hsdp": CUT},
)
