"""Rows "random states", "data" and "variables"."""

import random
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from forms.form import NAMED, NEITHER, SAME, THIN, Form, Sums, add, at_place
from loop import HERE, WIDTH, Net, draws, samples
from torch import Tensor, nn

WORDS = r"random|generator|draw|rng|seed"


class Drawn(Form):
    """Noise on the inputs of a step, drawn from the default generators at one place."""

    noise = 0.0

    def model(self) -> nn.Module:
        return Net(rate=0.1)

    def draw(self, number: int) -> None:
        self.noise = sum(draws())

    def batch(self, number: int, part: int) -> Tensor:
        return samples(number, part) + self.noise


class Wasted(Drawn):
    """Numbers are drawn and used for nothing: what is drawn later moves."""

    def draw(self, number: int) -> None:
        torch.rand(number + 1)
        np.random.rand(3)
        random.random()


class OutsetThenWasted(Drawn):
    """Drawn between ``for`` and ``with``; others were drawn after the previous step."""

    def outset(self, number: int) -> None:
        super().draw(number)

    def between(self, step: Any) -> None:
        torch.rand(3)


class InPart(Drawn):
    """Drawn with the batch of a part, which begins the random numbers."""

    def batch(self, number: int, part: int) -> Tensor:
        return samples(number, part) + sum(draws())


add("random.top", at_place("top", Drawn.draw, Drawn), row="random states", words=WORDS)
add("random.part", InPart, row="random states", words=WORDS, elastic=True)
add("random.outset", at_place("outset", Drawn.draw, Drawn), row="random states", words=WORDS, verdict=NAMED)
add("random.outset_and_between", OutsetThenWasted, row="random states", words=WORDS, verdict=NAMED)
for where in ("ready", "outset", "after", "between"):
    add(
        f"random.wasted.{where}",
        at_place(where, Wasted.draw, Wasted),
        row="random states",
        words=WORDS,
        changes_after=where == "after",
        places=THIN,
    )
for where in ("after", "between"):
    add(
        f"variables.drawn.{where}",
        at_place(where, Drawn.draw, Drawn),
        row="variables",
        words=WORDS,
        verdict=NEITHER,
        changes_after=where == "after",
        places=THIN,
    )


class Seeds(Form):
    """The program sets a seed in each step."""

    def model(self) -> nn.Module:
        return Net(rate=0.1)

    def seed(self, number: int) -> None:
        torch.manual_seed(number)


for where in ("top", "after", "between"):
    add(
        f"random.seed.{where}",
        at_place(where, Seeds.seed, Seeds),
        row="random states",
        words=WORDS,
        changes_after=where == "after",
        places=THIN,
    )


class HeldDraw(Drawn):
    """What is drawn for the next step is in ``state=``."""

    def arguments(self) -> dict[str, Any]:
        self.sums = Sums(noise=0.0)
        return {"state": {"noise": self.sums}}

    def draw(self, number: int) -> None:
        self.sums.values["noise"] = sum(draws())

    def batch(self, number: int, part: int) -> Tensor:
        noisy: Tensor = samples(number, part) + self.sums.values["noise"]
        return noisy


for where in ("before", "after", "between", "after_update"):
    add(
        f"random.held.{where}",
        at_place(where, HeldDraw.draw, HeldDraw),
        row="random states",
        words=WORDS + "|state|noise",
        verdict=NAMED,  # ranks draw other numbers, and those of a lost rank are nobody else's, but for snapshots
        by_layout={"fsdp": SAME} if where in ("before", "after_update") else {},
        changes_after=where == "after",
    )


class Own(Form):
    """A generator of the program, in ``state=`` or not; of the rank or the same on all."""

    held = True
    by_rank = True
    as_it_is = False

    def arguments(self) -> dict[str, Any]:
        self.generator = torch.Generator().manual_seed(77)
        return {"state": {"generator": self.generator if self.as_it_is else self}} if self.held else {}

    def ready(self) -> None:
        if self.by_rank and not HERE.run.step:
            self.generator.manual_seed(100 + HERE.run.data_rank)

    def state_dict(self) -> dict[str, Any]:
        return {"generator": self.generator.get_state()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.generator.set_state(state["generator"])

    def batch(self, number: int, part: int) -> Tensor:
        return torch.randn(8, WIDTH, generator=self.generator)


add("generator.state", type("OwnSame", (Own,), {"by_rank": False}), row="random states", words=WORDS + "|state")
add(
    "generator.as_it_is",
    type("OwnAsItIs", (Own,), {"by_rank": False, "as_it_is": True}),
    row="random states",
    words=WORDS + "|state",
)
add(
    "generator.by_rank.state",
    Own,
    row="random states",
    words=WORDS + "|state",
    verdict=NAMED,
    by_layout={"fsdp": SAME},
)
add("variables.generator", type("OwnFree", (Own,), {"held": False}), row="variables", words=WORDS, verdict=NEITHER)


class Epochs(Form):
    """An order of samples for each epoch, drawn at its beginning."""

    held = True

    def arguments(self) -> dict[str, Any]:
        self.sums = Sums(order=torch.arange(4))
        return {"state": {"order": self.sums}} if self.held else {}

    def draw(self, number: int) -> None:
        if number % 4 == 0:
            self.sums.values["order"] = torch.randperm(4)

    def batch(self, number: int, part: int) -> Tensor:
        return samples(int(self.sums.values["order"][number % 4]), part)


def by_step(form: Any, number: int) -> None:
    """The documented way: a function of the epoch."""
    form.sums.values["order"] = torch.randperm(4, generator=torch.Generator().manual_seed(number // 4))


for where in ("outset", "top"):
    add(
        f"data.order.{where}.state",
        at_place(where, Epochs.draw, Epochs),
        row="data",
        words=WORDS + "|order|state",
        verdict=SAME if where == "top" else NAMED,
    )
    add(
        f"variables.order.{where}",
        at_place(where, Epochs.draw, Epochs, held=False),
        row="variables",
        words=WORDS,
        verdict=NEITHER,
        places=THIN,
    )
add("data.order.function", at_place("outset", by_step, Epochs, held=False), row="data", words=WORDS, elastic=True)


class Cursor(Form):
    """A position in the data, in ``state=``."""

    def arguments(self) -> dict[str, Any]:
        self.sums = Sums(position=0)
        return {"state": {"position": self.sums}}

    def move(self, number: int) -> None:
        self.sums.values["position"] += 1

    def batch(self, number: int, part: int) -> Tensor:
        return samples(self.sums.values["position"], part)

    def result(self) -> Any:
        return self.sums.values["position"]


for where in ("before", "after", "between", "after_update"):
    add(
        f"data.cursor.{where}",
        at_place(where, Cursor.move, Cursor),
        row="data",
        words="position|state",
        changes_after=where == "after",
    )


class Iterates(Form):
    """Data of a generator of Python: documented as the program's own."""

    def arguments(self) -> dict[str, Any]:
        self.source = self.numbers()
        return {}

    def numbers(self) -> Iterator[int]:
        yield from range(1000)

    def batch(self, number: int, part: int) -> Tensor:
        return samples(next(self.source), part)


add("variables.iterator", Iterates, row="variables", words="iterator|data", verdict=NEITHER)


class Closure(Form):
    """A temperature that a closure holds."""

    def arguments(self) -> dict[str, Any]:
        temperature = 1.0

        def cool() -> float:
            nonlocal temperature
            temperature *= 0.9
            return temperature

        self.cool = cool
        return {}

    def loss(self, values: Tensor) -> Tensor:
        return super().loss(values) * self.cool()


add("variables.closure", Closure, row="variables", words="closure|variable", verdict=NEITHER, places=THIN)
