"""A form: one habit of a training loop, with the places at which it changes something, and what may follow a loss."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from loop import HERE, STEPS, Net, is_last_of_epoch, samples
from torch import Tensor, nn

import holdfast_runtime as holdfast

SAME, NAMED, REFUSED, NEITHER = "same", "same or named", "refused", "neither"
"""Verdicts: bits of the calm run; those, or ended with a message that names it; refused also when calm; any end."""
ALL = ("top", "forward", "backward", "vote", "after", "between", "evaluation", "pause")
"""Places of a kill. pause: after ``with step:``, and the others notice it between two steps."""
THIN = ("backward", "vote", "after", "between", "pause")
"""For forms that are one habit in many variants."""


class Form:
    """Parts of a loop that a form may replace. By default an evaluation follows each fourth step, in the step."""

    def model(self) -> nn.Module:
        return Net()

    def units(self, model: Any) -> list[Any]:
        """Modules that are cut on their own in a sharded layout."""
        return [model.first, model.last]

    def optimizer(self, model: nn.Module) -> torch.optim.Optimizer:
        return torch.optim.AdamW(model.parameters(), lr=1e-2)

    def arguments(self) -> dict[str, Any]:
        """More arguments of ``Run``."""
        return {}

    def ready(self) -> None:
        """Between ``Run`` and the loop."""

    def outset(self, number: int) -> None:
        """Between ``for`` and ``with``."""

    def top(self, number: int) -> None:
        """First in the step."""

    def batch(self, number: int, part: int) -> Tensor:
        return samples(number, part)

    def loss(self, values: Tensor) -> Tensor:
        error: Tensor = (HERE.model(values) - values).square().mean()
        return error

    def backward(self, loss: Any) -> None:
        loss.backward()

    def before(self, number: int) -> None:
        """After backward, before the update."""

    def update(self, step: holdfast.Step, loss: Tensor) -> None:
        step.update(loss)

    def after(self, number: int) -> None:
        """After the update, in the step."""

    def evaluate(self, number: int) -> None:
        """In the step, last; the rank to be killed is killed in its middle."""
        HERE.model.eval()
        with torch.no_grad():
            value = self.error(number)
        HERE.die("evaluation")
        HERE.run.all_reduce_mean(value)
        HERE.model.train()

    def error(self, number: int) -> Tensor:
        """Of data that are not trained with."""
        values = samples(10**6 + number, HERE.run.data_rank)
        found: Tensor = (HERE.model(values) - values).square().mean()
        return found

    def between(self, step: holdfast.Step) -> None:
        """After ``with step:``."""

    def result(self) -> Any:
        """What else has to be as in the calm run; plain values."""
        return None


class Sums:
    """A program's counter that ``Run(state=...)`` holds."""

    def __init__(self, **values: Any) -> None:
        self.values = values

    def state_dict(self) -> dict[str, Any]:
        return dict(self.values)

    def load_state_dict(self, state: dict[str, Any]) -> None:
        for name, value in state.items():
            own = self.values.get(name)
            if isinstance(value, Tensor) and isinstance(own, Tensor):
                own.copy_(value)
            else:
                self.values[name] = value


@dataclass(frozen=True, kw_only=True)
class Entry:
    """A form and what is expected of it."""

    name: str
    row: str
    """Of the table of all that belongs to training."""
    make: Callable[[], Form]
    verdict: str
    words: str
    """Regular expression: a message names the thing if it matches."""
    by_layout: Mapping[str, str] = field(default_factory=dict)
    """Other verdicts, by layout."""
    by_place: Mapping[str, str] = field(default_factory=dict)
    """Other verdicts, by place of the kill."""
    places: tuple[str, ...] = ALL
    changes_after: bool = False
    """Something changes after the update: its cells are run with a collective before that, too."""
    without: Mapping[str, str] = field(default_factory=dict)
    """Layouts that make no sense, with the reason."""
    elastic: bool = False
    """Run it in an elastic job, too."""
    mean: bool = False
    """Run it with survivors that notice the loss in a collective between two steps, too."""


FORMS: dict[str, Entry] = {}


def add(name: str, make: Callable[[], Form], *, row: str, words: str, verdict: str = SAME, **more: Any) -> None:
    """Register a form."""
    assert name not in FORMS, f"two forms are named {name}"
    FORMS[name] = Entry(name=name, row=row, make=make, verdict=verdict, words=words, **more)


def at_place(place: str, change: Callable[[Any, int], None], base: type[Form], **values: Any) -> Callable[[], Form]:
    """
    Return a maker of forms that change something at one place of the loop.

    Args:
        place: ready, outset, top, before, after, between, or guarded: after ``with step:``, if the step is done.
        change: Function of the form and the number of the step.
        values: Attributes of the form.
    """

    def between(form: Any, step: holdfast.Step) -> None:
        if place == "between" or step.done:
            change(form, step.number)

    at: dict[str, Any] = {"between": between} if place in ("between", "guarded") else {place: change}
    if place == "ready":
        at = {"ready": lambda form: change(form, 0)}
    if place == "after_update":
        at = {"arguments": lambda form: {**base.arguments(form), "after_update": lambda done: change(form, done - 1)}}
    made: type[Form] = type(f"{base.__name__}At", (base,), {**at, **values})
    return made


def each_epoch(change: Callable[[Any], None]) -> Callable[[Any, int], None]:
    """Return a change at the end of each fourth step."""

    def changed(form: Any, number: int) -> None:
        if is_last_of_epoch(number):
            change(form)

    return changed


def once_at(step: int, change: Callable[[Any], None]) -> Callable[[Any, int], None]:
    """Return a change at one step."""
    assert step < STEPS

    def changed(form: Any, number: int) -> None:
        if number == step:
            change(form)

    return changed
