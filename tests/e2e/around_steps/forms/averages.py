"""Row "state=": averages of the parameters and counters, at each place, equal on all ranks and by rank."""

import hashlib
from typing import Any

import torch
from forms.form import NAMED, NEITHER, SAME, THIN, Form, Sums, add, at_place
from loop import HERE, local
from torch import Tensor, nn

WORDS = r"state|average|box|sums"


class Averaged(Form):
    """A moving average of this rank's parts of the parameters."""

    held = True

    def optimizer(self, model: nn.Module) -> torch.optim.Optimizer:
        self.average = [local(parameter).detach().clone() for parameter in model.parameters()]
        return super().optimizer(model)

    def state_dict(self) -> dict[str, Any]:
        return {"average": self.average}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        for own, other in zip(self.average, state["average"], strict=True):
            own.copy_(other)

    def arguments(self) -> dict[str, Any]:
        return {"state": {"average": self}} if self.held else {}

    def add_up(self, number: int) -> None:
        for own, parameter in zip(self.average, HERE.parameters(), strict=True):
            own.lerp_(parameter, 0.1)

    def result(self) -> Any:
        if HERE.layout == "elastic":
            return None
        return hashlib.sha256(b"".join(part.numpy().tobytes() for part in self.average)).hexdigest()[:10]


for where in ("top", "before", "after", "between", "guarded", "after_update"):
    add(
        f"average.{where}.state",
        at_place(where, Averaged.add_up, Averaged),
        row="state=",
        words=WORDS + "|between|outside",
        changes_after=where == "after",
        mean=where in ("after", "between"),
    )


class Metric(nn.Module):
    """As those of libraries are: ``state_dict()`` has nothing of it."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("total", torch.zeros(()), persistent=False)
        self.seen, self.updates = torch.zeros(()), 0


class Metered(Form):
    """A metric of all steps so far."""

    def arguments(self) -> dict[str, Any]:
        self.metric: Any = Metric()
        return {"state": {"metric": self.metric}}

    def add_up(self, number: int) -> None:
        self.metric.total += number
        self.metric.seen += 1
        self.metric.updates += 1

    def result(self) -> Any:
        return [self.metric.total.item(), self.metric.seen.item(), self.metric.updates]


for where in ("top", "before", "after", "between"):
    add(
        f"metric.{where}.state",
        at_place(where, Metered.add_up, Metered),
        row="state=",
        words=WORDS + "|metric",
        changes_after=where == "after",
        places=THIN,
    )
for where in ("after", "between"):
    add(
        f"variables.average.{where}",
        at_place(where, Averaged.add_up, Averaged, held=False),
        row="variables",
        words=WORDS,
        verdict=NEITHER,
        changes_after=where == "after",
        places=THIN,
    )


class Hooked(Averaged):
    """The average is a hook of the optimizer."""

    def ready(self) -> None:
        HERE.optimizer.register_step_post_hook(lambda *_: self.add_up(0))


class Replaced(Averaged):
    """New tensors in each step; they are loaded as they are."""

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.average = list(state["average"])

    def add_up(self, number: int) -> None:
        self.average = [torch.lerp(own, part, 0.1) for own, part in zip(self.average, HERE.parameters(), strict=True)]


class Torchs(Form):
    """torch's AveragedModel, of replicas."""

    def optimizer(self, model: nn.Module) -> torch.optim.Optimizer:
        from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

        self.average = AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(0.9))  # type: ignore[no-untyped-call]
        return super().optimizer(model)

    def arguments(self) -> dict[str, Any]:
        return {"state": {"average": self.average}}

    def add_up(self, number: int) -> None:
        self.average.update_parameters(HERE.model)

    def result(self) -> Any:
        parts = [tensor.numpy().tobytes() for tensor in self.average.state_dict().values()]
        return hashlib.sha256(b"".join(parts)).hexdigest()[:10]


add("average.hook.state", Hooked, row="state=", words=WORDS)
for where in ("after", "between"):
    add(
        f"average.replaced.{where}.state",
        at_place(where, Replaced.add_up, Replaced),
        row="state=",
        words=WORDS,
        changes_after=where == "after",
        places=THIN,
    )
    reason = "a deep copy of a sharded model has groups of its own"
    add(
        f"average.torch.{where}.state",
        at_place(where, Torchs.add_up, Torchs),
        row="state=",
        words=WORDS,
        changes_after=where == "after",
        without={"fsdp": reason, "hsdp": reason},
    )


class Counting(Form):
    """A sum of this rank's own losses, which differs by rank, and noise that follows it."""

    def arguments(self) -> dict[str, Any]:
        self.sums = Sums(seen=torch.zeros(1), steps=0, names=["loss"])
        return {"state": {"sums": self.sums}}

    def loss(self, values: Tensor) -> Tensor:
        loss = super().loss(values + 0.1 * self.sums.values["seen"])
        self.seen = loss.detach()
        return loss

    def count(self, number: int) -> None:
        self.sums.values["seen"] += 0.1 * self.seen
        self.sums.values["steps"] += 1

    def result(self) -> Any:
        return [self.sums.values["seen"].item(), self.sums.values["steps"]]


class Equal(Counting):
    """The same sum on all ranks."""

    def count(self, number: int) -> None:
        self.seen = torch.full((1,), 0.01 * number)
        super().count(number)


for where in ("before", "after", "between", "after_update"):
    add(
        f"state.by_rank.{where}",
        at_place(where, Counting.count, Counting),
        row="state=",
        words=WORDS,
        verdict=NAMED,  # of a lost rank nobody else has its own sum, but for snapshots
        by_layout={} if where in ("after", "between") else {"fsdp": SAME},
        changes_after=where == "after",
    )
    add(
        f"state.equal.{where}",
        at_place(where, Equal.count, Equal),
        row="state=",
        words=WORDS,
        changes_after=where == "after",
        elastic=where == "before",
    )
