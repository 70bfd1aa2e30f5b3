"""Row "switches": grad mode, autocast, default type and other switches of torch."""

from typing import Any

import torch
from forms.form import NAMED, Form, add, at_place, once_at
from loop import HERE, Net
from torch import Tensor, nn

WORDS = r"switch|grad|autocast|dtype|default|determinis|precision|anomaly"


class GradOff(Form):
    """Gradients are switched off for an evaluation, and on again at its end."""

    def evaluate(self, number: int) -> None:
        torch.set_grad_enabled(False)
        value = self.error(number)
        HERE.die("evaluation")
        HERE.run.all_reduce_mean(value)
        torch.set_grad_enabled(True)


class HalfWay(Form):
    """Another default type for an evaluation, and the old one at its end."""

    def loss(self, values: Tensor) -> Tensor:
        return super().loss(values) * torch.ones(1).double().mean() + torch.ones(1).sum().div(3)

    def evaluate(self, number: int) -> None:
        torch.set_default_dtype(torch.float64)
        value = torch.ones(1).mean()
        HERE.die("evaluation")
        HERE.run.all_reduce_mean(value)
        torch.set_default_dtype(torch.float32)


class Types(Form):
    """New tensors have the default type; their rounding is in the loss."""

    def model(self) -> nn.Module:
        return Net(rate=0.1)

    def loss(self, values: Tensor) -> Tensor:
        return super().loss(values) * (torch.ones(1) / 3).float().mul(3.3).mean()

    def error(self, number: int) -> Tensor:
        return super().error(number).float()


class AutocastOn(Form):
    """Autocast from step 5 on, without a block."""

    def error(self, number: int) -> Tensor:
        return super().error(number).float()


def autocast(form: Any) -> None:
    torch.set_autocast_dtype("cpu", torch.bfloat16)
    torch.set_autocast_enabled("cpu", True)


def default_double(form: Any) -> None:
    torch.set_default_dtype(torch.float64)


def default_half(form: Any) -> None:
    torch.set_default_dtype(torch.bfloat16)


def deterministic(form: Any) -> None:
    torch.use_deterministic_algorithms(True)


def precision(form: Any) -> None:
    torch.set_float32_matmul_precision("medium")


class AutocastAtEvaluation(Form):
    """Autocast is entered for an evaluation, and left at its end."""

    def evaluate(self, number: int) -> None:
        block: Any = torch.autocast("cpu", dtype=torch.bfloat16)
        block.__enter__()
        with torch.no_grad():
            value = self.error(number).float()
        HERE.die("evaluation")
        HERE.run.all_reduce_mean(value)
        block.__exit__(None, None, None)


class InferenceBlock(Form):
    """The usual way: a block."""

    def evaluate(self, number: int) -> None:
        with torch.inference_mode():
            value = self.error(number)
            HERE.die("evaluation")
            HERE.run.all_reduce_mean(value.clone())


add(
    "switches.grad.evaluation", GradOff, row="switches", words=WORDS, changes_after=True, by_place={"evaluation": NAMED}
)
add(
    "switches.dtype.evaluation",
    HalfWay,
    row="switches",
    words=WORDS,
    changes_after=True,
    by_place={"evaluation": NAMED},
)
add(
    "switches.autocast.evaluation",
    AutocastAtEvaluation,
    row="switches",
    words=WORDS,
    changes_after=True,
    by_place={"evaluation": NAMED},
)
add(
    "switches.inference.evaluation",
    InferenceBlock,
    row="switches",
    words=WORDS,
    changes_after=True,
    by_place={"evaluation": NAMED},
)
for name, change, base in (
    ("autocast", autocast, AutocastOn),
    ("default_double", default_double, Types),
    ("default_half", default_half, Types),
    ("deterministic", deterministic, Form),
    ("precision", precision, Form),
):
    for where in ("top", "after", "between"):
        add(
            f"switches.{name}.{where}",
            at_place(where, once_at(5, change), base),
            row="switches",
            words=WORDS,
            verdict=NAMED,
            changes_after=where == "after",
            places=("backward", "vote", "after", "between", "pause"),
        )
