"""Rows "attributes", "requires_grad", "hooks" and "later modules": what a loop sets at a step."""

from typing import Any

import numpy as np
import torch
from forms.form import NAMED, SAME, THIN, Form, add, at_place, each_epoch, once_at
from loop import HERE, HIDDEN, Net
from torch import Tensor, nn
from torch.nn.utils import parametrize, prune

RATES = r"attribute|drop|\bp\b|rate"
FLAGS = r"requires_grad|frozen|freeze|first|flag"
HOOKS = r"hook"
LATER = r"prune|mask|module|parametri|weight|hook|buffer|parameter|later"


class Rate(Form):
    def model(self) -> nn.Module:
        return Net(rate=0.1)

    def result(self) -> Any:
        return round(HERE.model.drop.p, 6)


def more_dropout(form: Form) -> None:
    HERE.model.drop.p += 0.1


for where in ("top", "before", "after", "between", "after_update", "outset"):
    add(
        f"attributes.rate.{where}",
        at_place(where, each_epoch(more_dropout), Rate),
        row="attributes",
        words=RATES,
        changes_after=where == "after",
        elastic=where in ("top", "after_update"),
    )


class Keeps(nn.Module):
    """Attributes of several kinds, all of which its forward uses."""

    def __init__(self) -> None:
        super().__init__()
        self.noise: Any = 0.0
        self.count: Any = 0
        self.flag: Any = False
        self.list: Any = []
        self.dict: Any = {"scale": 1.0}
        self.tuple: Any = (0.0, 1.0)
        self.text: Any = "plain"
        self.none: Any = None
        self.plain: Any = torch.zeros(HIDDEN)
        self.array: Any = np.zeros(3)
        self.own: Any = Other()

    def forward(self, values: Tensor) -> Tensor:
        factor = 1.0 + self.noise + 0.01 * self.count + (0.3 if self.flag else 0.0) + 0.01 * len(self.list)
        factor += self.dict["scale"] + self.tuple[0] + (0.2 if self.text == "loud" else 0.0) + float(self.array.sum())
        factor += (0.0 if self.none is None else self.none) + self.own.value
        return nn.functional.gelu(values * factor + self.plain)


class Other:
    """A class of the program."""

    def __init__(self) -> None:
        self.value = 0.0


class Kept(Form):
    def model(self) -> nn.Module:
        return Net(middle=Keeps())

    def result(self) -> Any:
        own = HERE.model.middle
        parts = [own.noise, own.count, own.flag, own.list, own.dict, list(own.tuple), own.text, own.none]
        return [*parts, own.plain.sum().item(), own.array.tolist(), own.own.value]


def setting(name: str) -> Any:
    """A change of one attribute, in each step."""

    def change(form: Form, number: int) -> None:
        own = HERE.model.middle
        changes: dict[str, Any] = {
            "noise": lambda: own.noise + 0.05,
            "count": lambda: own.count + 1,
            "flag": lambda: own.flag != (number != 2),
            "list": lambda: own.list.append(number) or own.list,
            "dict": lambda: own.dict.update(scale=own.dict["scale"] * 0.9) or own.dict,
            "tuple": lambda: (own.tuple[0] + 0.05, 1.0),
            "text": lambda: own.text if number == 2 else "loud" if own.text == "plain" else "plain",
            "none": lambda: own.none if number == 2 else 0.1 if own.none is None else None,
            "plain": lambda: own.plain.add_(0.01),
            "array": lambda: own.array + 0.01,
        }
        if name == "own":
            own.own.value += 0.05
        else:
            setattr(own, name, changes[name]())

    return change


SIMPLE = ("noise", "count", "flag", "list", "dict", "tuple", "text", "none")
for attribute in (*SIMPLE, "plain", "array", "own"):
    simple = attribute in SIMPLE
    for where in ("top", "after", "between"):
        add(
            f"attributes.{attribute}.{where}",
            at_place(where, setting(attribute), Kept),
            row="attributes",
            words=rf"attribute|middle|{attribute}",
            verdict=SAME if simple else NAMED,
            changes_after=where == "after",
            places=THIN if attribute in ("noise", "plain", "own") else ("backward", "after", "between"),
            without={} if attribute in ("noise", "plain", "own") else {"hsdp": "as attributes.noise"},
        )


def of_this_rank(form: Form) -> None:
    HERE.model.middle.noise = 0.05 * (1 + HERE.run.data_rank)


for where in ("top", "before"):
    add(
        f"attributes.late_by_rank.{where}",
        at_place(where, once_at(5, of_this_rank), Kept),  # no longer one of the votes that compare all
        row="attributes",
        words=r"attribute|middle|noise",
        places=THIN,
    )


class Counts(nn.Module):
    """A counter that its own forward changes."""

    def __init__(self) -> None:
        super().__init__()
        self.calls = 0

    def forward(self, values: Tensor) -> Tensor:
        if HERE.place == "forward":
            self.calls += 1
        return nn.functional.gelu(values * (1 + 0.05 * self.calls))


class Counted(Form):
    def model(self) -> nn.Module:
        return Net(middle=Counts())

    def result(self) -> Any:
        return HERE.model.middle.calls


add("attributes.forward", Counted, row="attributes", words=r"attribute|middle|calls")


def freeze(form: Form) -> None:
    HERE.model.first.requires_grad_(requires_grad=False)


def flip(form: Form, number: int) -> None:
    """One layer trains in each second step, as of a GAN."""
    if number != 2:  # an even number of flips until a loss would hide it
        HERE.model.first.requires_grad_(not HERE.model.first.bias.requires_grad)


class StartsFrozen(Form):
    def model(self) -> nn.Module:
        net = Net()
        net.first.requires_grad_(requires_grad=False)
        return net


def thaw(form: Form) -> None:
    HERE.model.first.requires_grad_()


for where in ("top", "after", "between", "after_update"):
    shape: dict[str, Any] = {"row": "requires_grad", "words": FLAGS, "changes_after": where == "after"}
    add(f"flags.freeze.{where}", at_place(where, once_at(5, freeze), Form), **shape)
    add(f"flags.flip.{where}", at_place(where, flip, Form), **{**shape, "places": THIN})
    add(f"flags.thaw.{where}", at_place(where, once_at(5, thaw), StartsFrozen), **shape, verdict=NAMED)


def forward_hook(form: Form) -> None:
    HERE.model.drop.register_forward_hook(lambda _module, _inputs, output: output * 1.5)


def forward_pre_hook(form: Form) -> None:
    HERE.model.drop.register_forward_pre_hook(lambda _module, inputs: (inputs[0] * 1.5,))


def gradient_hook(form: Form) -> None:
    HERE.model.last.bias.register_hook(lambda gradient: gradient * 0.5)


class Removes(Form):
    """A hook that is there from the beginning, and removed."""

    def ready(self) -> None:
        self.handle = HERE.model.drop.register_forward_hook(lambda _module, _inputs, output: output * 1.5)


def removed(form: Any) -> None:
    form.handle.remove()


def step_hook(form: Form) -> None:
    HERE.optimizer.register_step_pre_hook(lambda optimizer, *_: optimizer.param_groups[0].update(lr=5e-3))


for name, change, base in (
    ("forward", forward_hook, Form),
    ("forward_pre", forward_pre_hook, Form),
    ("gradient", gradient_hook, Form),
    ("removed", removed, Removes),
    ("optimizer", step_hook, Form),
):
    for where in ("top", "after", "between"):
        add(
            f"hooks.{name}.{where}",
            at_place(where, once_at(5, change), base),
            row="hooks",
            words=HOOKS + r"|param_groups|\blr\b",
            verdict=NAMED,
            changes_after=where == "after",
            places=THIN,
        )


def pruned(form: Form, number: int) -> None:
    if number % 4 == 1:
        prune.l1_unstructured(  # type: ignore[no-untyped-call]
            HERE.model.last, "weight", 0.2
        )


class Doubled(nn.Module):
    def forward(self, values: Tensor) -> Tensor:
        return 1.1 * values


def parametrized(form: Form) -> None:
    parametrize.register_parametrization(HERE.model.last, "weight", Doubled())


def module_added(form: Form) -> None:
    HERE.model.middle = nn.Sequential(nn.GELU(), nn.Dropout(0.2))


CUT = {"fsdp": "fully_shard has cut the layer already", "hsdp": "fully_shard has cut the layer already"}
for where in ("top", "after"):
    after = where == "after"
    add(
        f"later.pruned.{where}",
        at_place(where, pruned, Form),
        row="later modules",
        words=LATER,
        verdict=NAMED,
        changes_after=after,
        without=CUT,
    )
    add(
        f"later.parametrized.{where}",
        at_place(where, once_at(5, parametrized), Form),
        row="later modules",
        words=LATER,
        verdict=NAMED,
        changes_after=after,
        without=CUT,
    )
    add(
        f"later.module.{where}",
        at_place(where, once_at(5, module_added), Form),
        row="later modules",
        words=LATER + "|middle",
        verdict=NAMED,
        changes_after=after,
    )
