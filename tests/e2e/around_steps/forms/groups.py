"""Rows "optimizer groups", "optimizer state", "gradients" and "scaler"."""

from typing import Any

import torch
from forms.form import NAMED, NEITHER, THIN, Form, Sums, add, at_place, each_epoch, once_at
from loop import HERE, Net, local
from torch import Tensor, nn

import holdfast_runtime as holdfast

GROUPS = r"param_groups|\blr\b|weight_decay|momentum|betas|group"
STATE = r"optimizer|exp_avg|momentum|state"


def scaled(key: str, by: float) -> Any:
    def change(form: Form, number: int) -> None:
        for group in HERE.optimizer.param_groups:
            group[key] = group[key] * by

    return change


class Decayed(Form):
    """Two groups, of which one decays."""

    def optimizer(self, model: Any) -> torch.optim.Optimizer:
        biases = [p for name, p in model.named_parameters() if name.endswith("bias")]
        others = [p for name, p in model.named_parameters() if not name.endswith("bias")]
        groups: list[dict[str, Any]] = [{"params": others, "weight_decay": 0.1}, {"params": biases}]
        return torch.optim.AdamW(groups, lr=1e-2)


for where in ("top", "before", "after", "between", "after_update", "guarded", "outset"):
    add(
        f"groups.lr.{where}",
        at_place(where, scaled("lr", 0.9), Decayed),
        row="groups",
        words=GROUPS,
        changes_after=where == "after",
        elastic=where in ("top", "after_update"),
    )
for where in ("top", "after", "between"):
    add(
        f"groups.weight_decay.{where}",
        at_place(where, each_epoch(lambda form: scaled("weight_decay", 0.5)(form, 0)), Decayed),
        row="groups",
        words=GROUPS,
        changes_after=where == "after",
        places=THIN,
    )


def betas(form: Form) -> None:
    HERE.optimizer.param_groups[0]["betas"] = (0.8, 0.99)


def own_key(form: Form, number: int) -> None:
    group = HERE.optimizer.param_groups[0]
    group["seen"] = group.get("seen", 0) + 1
    group["lr"] = 1e-2 / group["seen"]


add("groups.betas.top", at_place("top", once_at(5, betas), Form), row="groups", words=GROUPS)
add("groups.own_key.top", at_place("top", own_key, Form), row="groups", words=GROUPS + "|seen", verdict=NAMED)
add(
    "groups.own_key.after",
    at_place("after", own_key, Form),
    row="groups",
    words=GROUPS + "|seen",
    verdict=NAMED,
    changes_after=True,
)


class Later(Form):
    """A group that comes later, with a parameter that the model has had from the beginning."""

    def optimizer(self, model: Any) -> torch.optim.Optimizer:
        return torch.optim.AdamW(model.first.parameters(), lr=1e-2)


def one_more(form: Form) -> None:
    HERE.optimizer.add_param_group({"params": list(HERE.model.last.parameters()), "lr": 1e-3})


def one_new(form: Form) -> None:
    extra = nn.Parameter(torch.ones(1))
    extra.grad = torch.ones(1)
    HERE.optimizer.add_param_group({"params": [extra], "lr": 1e-3})


for where in ("top", "after", "between"):
    add(
        f"groups.added.{where}",
        at_place(where, once_at(5, one_more), Later),
        row="groups",
        words=GROUPS,
        verdict=NAMED,
        changes_after=where == "after",
    )
add("groups.added_new.top", at_place("top", once_at(5, one_new), Form), row="groups", words=GROUPS, verdict=NAMED)


class Tokens(Form):
    """A learning rate by a counter of samples."""

    held = True

    def arguments(self) -> dict[str, Any]:
        self.sums = Sums(tokens=0)
        return {"state": {"sums": self.sums}} if self.held else {}

    def count(self, number: int) -> None:
        self.sums.values["tokens"] += 128
        for group in HERE.optimizer.param_groups:
            group["lr"] = 1e-2 / (1 + self.sums.values["tokens"] / 500)

    def result(self) -> Any:
        return self.sums.values["tokens"]


for where in ("top", "before", "after", "between", "after_update"):
    add(
        f"groups.tokens.{where}.state",
        at_place(where, Tokens.count, Tokens),
        row="state=",
        words=GROUPS + "|sums|tokens|state",
        changes_after=where == "after",
        elastic=where == "before",
    )
for where in ("top", "after", "between"):
    add(
        f"variables.tokens.{where}",
        at_place(where, Tokens.count, Tokens, held=False),
        row="variables",
        words=GROUPS,
        verdict=NEITHER,
        changes_after=where == "after",
    )


def moments_to_zero(form: Form) -> None:
    for state in HERE.optimizer.state.values():
        state["exp_avg"].zero_()


def cleared(form: Form) -> None:
    HERE.optimizer.state.clear()


def own_entry(form: Form, number: int) -> None:
    """An entry of the optimizer's state that only the program knows."""
    for parameter in HERE.model.first.parameters():
        state = HERE.optimizer.state[parameter]
        state["turns"] = state.get("turns", 0) + 1
        state["exp_avg"].mul_(1 / (1 + 0.01 * state["turns"]))


for where in ("top", "before", "after", "between"):
    add(
        f"optimizer.zeroed.{where}",
        at_place(where, once_at(5, moments_to_zero), Form),
        row="optimizer state",
        words=STATE,
        changes_after=where == "after",
        verdict=NAMED if where in ("top", "before") else "same",
    )
add(
    "optimizer.cleared.after",
    at_place("after", once_at(5, cleared), Form),
    row="optimizer state",
    words=STATE,
    changes_after=True,
)
add(
    "optimizer.own_entry.after",
    at_place("after", own_entry, Form),
    row="optimizer state",
    words=STATE + "|turns",
    verdict=NAMED,
    changes_after=True,
)


class Counting(torch.optim.AdamW):
    """One that decays by a count of its own, and rounds at random."""

    def __init__(self, parameters: Any) -> None:
        super().__init__(parameters, lr=1e-2)
        self.turns = 0

    @torch.no_grad()
    def step(self, closure: Any = None) -> Any:
        super().step(closure)
        self.turns += 1
        for group in self.param_groups:
            for parameter in group["params"]:
                parameter.mul_(1 - 1e-3 * self.turns).add_(torch.rand(()).item(), alpha=1e-3)


class Counted(Form):
    """The optimizer has an attribute that decides about its update, and draws random numbers in it."""

    def optimizer(self, model: nn.Module) -> torch.optim.Optimizer:
        return Counting(model.parameters())

    def result(self) -> Any:
        return HERE.optimizer.turns


add("optimizer.counting", Counted, row="optimizer state", words=STATE + "|turns")


class Clipped(Form):
    """Whole gradients are clipped."""

    def update(self, step: holdfast.Step, loss: Tensor) -> None:
        step.reduce(loss)
        torch.nn.utils.clip_grad_norm_(HERE.model.parameters(), 0.1)
        step.update()


class Noisy(Form):
    """Whole gradients with noise, a function of the step; this rank's part of it in a sharded layout."""

    def update(self, step: holdfast.Step, loss: Tensor) -> None:
        step.reduce(loss)
        generator = torch.Generator().manual_seed(step.number)
        for parameter in HERE.model.first.parameters():
            local(parameter.grad).mul_(1 + 0.1 * torch.rand(1, generator=generator).item())
        step.update()


class Accumulated(Form):
    def backward(self, loss: Any) -> None:
        (0.5 * loss).backward(retain_graph=True)
        (0.5 * loss).backward()


def forget_gradients(form: Form, number: int) -> None:
    HERE.optimizer.zero_grad(set_to_none=True)


class KeptGradient(Form):
    """A mean of whole gradients, as a buffer of the model."""

    def model(self) -> nn.Module:
        model = Net()
        model.register_buffer("previous", torch.zeros(16))
        return model

    def update(self, step: holdfast.Step, loss: Tensor) -> None:
        step.reduce(loss)
        HERE.model.previous.mul_(0.9).add_(local(HERE.model.last.bias.grad).mean())
        step.update()

    def loss(self, values: Tensor) -> Tensor:
        return super().loss(values + 0.1 * HERE.model.previous)


add("gradients.clipped", Clipped, row="gradients", words="grad")
add("gradients.noise", Noisy, row="gradients", words="grad")
add("gradients.two_backwards", Accumulated, row="gradients", words="grad|backward|accumulate", verdict=NAMED)
for where in ("outset", "top", "after", "between"):
    add(
        f"gradients.zero.{where}",
        at_place(where, forget_gradients, Form),
        row="gradients",
        words="grad",
        changes_after=where == "after",
        places=THIN,
    )
add("gradients.kept", KeptGradient, row="gradients", words="grad|previous")


class Scaled(Form):
    """A GradScaler that grows each third step, and is updated after the update."""

    held = True

    def arguments(self) -> dict[str, Any]:
        self.scaler: Any = torch.amp.GradScaler("cpu", init_scale=1024.0, growth_interval=3)
        return {"state": {"scaler": self.scaler}} if self.held else {}

    def backward(self, loss: Any) -> None:
        self.scaler.scale(loss).backward()

    def update(self, step: holdfast.Step, loss: Tensor) -> None:
        step.reduce(loss)
        self.scaler.unscale_(HERE.optimizer)
        step.update()

    def grow(self, number: int) -> None:
        self.scaler.update()

    def result(self) -> Any:
        return [self.scaler.get_scale(), self.scaler._get_growth_tracker()]


SCALER = "scaler|scale"
for where in ("after", "guarded", "after_update"):
    add(
        f"scaler.{where}.state",
        at_place(where, Scaled.grow, Scaled),
        row="scaler",
        words=SCALER,
        changes_after=where == "after",
    )
add(
    "variables.scaler.after",
    at_place("after", Scaled.grow, Scaled, held=False),
    row="variables",
    words=SCALER,
    verdict=NEITHER,
    changes_after=True,
)
