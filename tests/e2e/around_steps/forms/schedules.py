"""Row "scheduler": each kind of torch, at each place of a loop, in ``state=``, in ``Run(scheduler=)``, in neither."""

from collections.abc import Callable
from typing import Any

import torch
from forms.form import ALL, NAMED, REFUSED, SAME, THIN, Form, add, at_place
from loop import STEPS, is_last_of_epoch
from torch import nn
from torch.optim import Optimizer
from torch.optim import lr_scheduler as kinds

WORDS = r"\blr\b|schedul|learning rate"


def sequential(optimizer: Optimizer) -> Any:
    warm = kinds.LinearLR(optimizer, start_factor=0.2, total_iters=5)
    return kinds.SequentialLR(optimizer, [warm, kinds.ExponentialLR(optimizer, 0.8)], milestones=[5])


def chained(optimizer: Optimizer) -> Any:
    return kinds.ChainedScheduler(
        [kinds.ConstantLR(optimizer, 0.5, total_iters=6), kinds.ExponentialLR(optimizer, 0.9)]
    )


KINDS: dict[str, Callable[[Optimizer], Any]] = {
    "exponential": lambda optimizer: kinds.ExponentialLR(optimizer, 0.9),
    "step": lambda optimizer: kinds.StepLR(optimizer, 5, 0.5),
    "multistep": lambda optimizer: kinds.MultiStepLR(optimizer, [3, 7, 9], 0.5),
    "cosine": lambda optimizer: kinds.CosineAnnealingLR(optimizer, STEPS, 1e-4),
    "restarts": lambda optimizer: kinds.CosineAnnealingWarmRestarts(optimizer, 5),
    "onecycle": lambda optimizer: kinds.OneCycleLR(optimizer, max_lr=2e-2, total_steps=2 * STEPS),
    "cyclic": lambda optimizer: kinds.CyclicLR(optimizer, 1e-3, 1e-2, step_size_up=3, cycle_momentum=False),
    "lambda": lambda optimizer: kinds.LambdaLR(optimizer, lambda count: 0.9**count),
    "multiplicative": lambda optimizer: kinds.MultiplicativeLR(optimizer, lambda count: 0.9 if count % 2 else 0.8),
    "polynomial": lambda optimizer: kinds.PolynomialLR(optimizer, STEPS),
    "sequential": sequential,
    "chained": chained,
    "plateau": lambda optimizer: kinds.ReduceLROnPlateau(optimizer, patience=0, threshold=0.5),
}


class Scheduled(Form):
    """A scheduler that a loop steps; once in an epoch where ``epochs`` is set."""

    kind = "exponential"
    held = "state"
    epochs = False

    def optimizer(self, model: nn.Module) -> Optimizer:
        optimizer = torch.optim.SGD(model.parameters(), lr=5e-2, momentum=0.9)
        self.scheduler = KINDS[self.kind](optimizer)
        return optimizer

    def arguments(self) -> dict[str, Any]:
        if self.held == "state":
            return {"state": {"scheduler": self.scheduler}}
        return {"scheduler": self.scheduler} if self.held in ("run", "both") else {}

    def result(self) -> Any:
        if self.held == "free":  # only what it does to the optimizer counts
            return None
        return [getattr(self.scheduler, "last_epoch", 0), [round(value, 12) for value in self.scheduler.get_last_lr()]]


def stepped(form: Any, number: int) -> None:
    if form.kind == "plateau":
        form.scheduler.step(1.0)
    elif not form.epochs or is_last_of_epoch(number):
        form.scheduler.step()


def schedule(kind: str, place: str, held: str, verdict: str, **more: Any) -> None:
    after = {"changes_after": place == "after"}
    add(
        f"schedule.{kind}.{place}.{held}",
        at_place(place, stepped, Scheduled, kind=kind, held=held),
        row="scheduler",
        words=WORDS,
        verdict=verdict,
        **{**after, **more},
    )


OTHERS = {"hsdp": "all places of this kind are tried with exponential in this layout"}
for name in KINDS:
    common = name in ("exponential", "step", "plateau")
    for where in ("top", "before", "after", "between"):
        shape: dict[str, Any] = {"places": ALL if name == "exponential" else THIN}
        if name != "exponential":
            shape["without"] = OTHERS
        schedule(name, where, "state", SAME, **shape)
        if common:
            schedule(name, where, "free", NAMED, **shape)
    if name != "plateau":
        add(
            f"schedule.{name}.run",
            type("Given", (Scheduled,), {"kind": name, "held": "run"}),
            row="scheduler",
            words=WORDS,
            places=THIN,
            without={} if name == "exponential" else OTHERS,
            elastic=name == "exponential",
        )
for name in ("exponential", "step", "plateau"):
    schedule(name, "after_update", "state", SAME, places=THIN, elastic=name == "step")
    schedule(name, "guarded", "state", SAME, places=THIN)
    schedule(name, "guarded", "free", NAMED, places=THIN)
for where in ("after", "between"):
    add(
        f"schedule.epochs.{where}.state",
        at_place(where, stepped, Scheduled, kind="exponential", held="state", epochs=True),
        row="scheduler",
        words=WORDS,
        changes_after=where == "after",
        elastic=True,
    )
    add(
        f"schedule.both.{where}",
        at_place(where, stepped, Scheduled, kind="step", held="both"),
        row="scheduler",
        words=WORDS,
        verdict=REFUSED,
        places=(),
    )
add(
    "schedule.both.before",
    at_place("before", stepped, Scheduled, kind="exponential", held="both"),
    row="scheduler",
    words=WORDS,
    verdict=REFUSED,
    places=(),
)
