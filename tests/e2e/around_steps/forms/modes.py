"""Row "modes": training and evaluation, validations in all places."""

from typing import Any

import torch
from forms.form import NAMED, THIN, Form, add, at_place, each_epoch
from loop import HERE, Net, samples
from torch import Tensor, nn

WORDS = r"mode|training|train\(|eval"
RATE = 0.2


class Dropout(Form):
    """Modes matter: dropout in training only."""

    def model(self) -> nn.Module:
        return Net(rate=RATE)


class Normed(Form):
    """Modes matter: statistics of a BatchNorm."""

    def model(self) -> nn.Module:
        return Net(rate=RATE, norm=True)


class ValidationAtTop(Dropout):
    """The model is evaluated before it is trained with."""

    def top(self, number: int) -> None:
        if number % 4 == 3:
            HERE.model.eval()
            with torch.no_grad():
                value = self.error(number)
            HERE.die("evaluation")
            HERE.run.all_reduce_mean(value)
            HERE.model.train()

    def evaluate(self, number: int) -> None:
        pass


class NormedAtTop(ValidationAtTop):
    def model(self) -> nn.Module:
        return Net(rate=RATE, norm=True)


class Finally(Dropout):
    def evaluate(self, number: int) -> None:
        HERE.model.eval()
        try:
            with torch.no_grad():
                value = self.error(number)
            HERE.die("evaluation")
            HERE.run.all_reduce_mean(value)
        finally:
            HERE.model.train()


class Frozen(Form):
    """A BatchNorm that is frozen at step 5, as in fine-tuning, and stays so."""

    def model(self) -> nn.Module:
        return Net(rate=RATE, norm=True)

    def top(self, number: int) -> None:
        if number == 5:
            HERE.model.norm.eval()

    def evaluate(self, number: int) -> None:
        super().evaluate(number)
        if number >= 5:
            HERE.model.norm.eval()


class EvalFromStep(Dropout):
    """No dropout any more from step 5 on."""

    def top(self, number: int) -> None:
        if number == 5:
            HERE.model.drop.eval()

    def evaluate(self, number: int) -> None:
        super().evaluate(number)
        if number >= 5:
            HERE.model.drop.eval()


class SetsItself(nn.Module):
    """A module that sets its own mode by what it sees."""

    def __init__(self) -> None:
        super().__init__()
        self.drop = nn.Dropout(0.3)

    def forward(self, values: Tensor) -> Tensor:
        found: Tensor = self.drop(values)
        self.drop.train(bool(values.mean() > 0))
        return found


class InForward(Form):
    def model(self) -> nn.Module:
        return Net(middle=SetsItself())


class ByRank(Dropout):
    """Rank 1 has no dropout, on purpose."""

    def ready(self) -> None:
        if HERE.run.data_rank == 1:
            HERE.model.drop.eval()

    def evaluate(self, number: int) -> None:
        super().evaluate(number)
        self.ready()


class Raises(Dropout):
    """A validation that raises once, on one rank, in a job in which another rank is killed."""

    def evaluate(self, number: int) -> None:
        HERE.model.eval()
        if HERE.kills and number == 7 and HERE.run.rank == 0 and HERE.once("raised"):
            raise ValueError("the validation of rank 0 has no data")
        super().evaluate(number)


class UpdateBn(Normed):
    """Statistics are computed anew by torch's ``update_bn``; a loss can interrupt it."""

    def evaluate(self, number: int) -> None:
        from torch.optim.swa_utils import update_bn

        def loader() -> Any:
            for count in range(3):
                if count == 1:
                    HERE.die("evaluation")
                yield samples(count, HERE.run.data_rank)
                HERE.run.all_reduce_mean(torch.zeros(1))

        update_bn(loader(), HERE.model)

    def result(self) -> Any:
        return HERE.model.norm.momentum


class OneByOne(Normed):
    """Modes of single modules, changed and put back after the update."""

    def after(self, number: int) -> None:
        if number % 4 == 1:
            HERE.model.drop.eval()
        if number % 4 == 3:
            HERE.model.drop.train()


class ValidatesLocally(Dropout):
    """After ``with step:``, by each rank for itself."""

    def between(self, step: Any) -> None:
        if step.number % 4 == 3:
            HERE.model.eval()
            with torch.no_grad():
                self.error(step.number)
            HERE.model.train()


add(
    "modes.after",
    Dropout,
    row="modes",
    words=WORDS + "|between|outside",
    changes_after=True,
    elastic=True,
    mean=True,
)
add("modes.after.batchnorm", Normed, row="modes", words=WORDS + "|norm", changes_after=True)
add("modes.top", ValidationAtTop, row="modes", words=WORDS, elastic=True)
add("modes.top.batchnorm", NormedAtTop, row="modes", words=WORDS + "|norm")
add("modes.finally", Finally, row="modes", words=WORDS, changes_after=True)
# What sets modes behind the collective of an evaluation may end the job, which names the statement.
add("modes.frozen_norm", Frozen, row="modes", words=WORDS + "|norm", by_place={"evaluation": NAMED})
add(
    "modes.eval_from_step",
    EvalFromStep,
    row="modes",
    words=WORDS + "|drop",
    elastic=True,
    by_place={"evaluation": NAMED},
)
add("modes.in_forward", InForward, row="modes", words=WORDS + "|drop", verdict=NAMED)
add("modes.by_rank", ByRank, row="modes", words=WORDS + "|drop", verdict=NAMED)
# Two ranks of two are lost in the step of the evaluation: that ends the job, whatever it has.
add(
    "modes.raises",
    Raises,
    row="modes",
    words=WORDS + "|has no data|no process has the state|was left",
    verdict=NAMED,
    places=("top", "forward", "backward", "vote", "after", "between", "pause"),
)
add("modes.update_bn", UpdateBn, row="modes", words=WORDS + "|norm|momentum", verdict=NAMED, changes_after=True)
add(
    "modes.one_by_one", OneByOne, row="modes", words=WORDS + "|drop", changes_after=True, by_place={"evaluation": NAMED}
)
ALONE = "a forward of a sharded model is a collective, and belongs into a step"
add("modes.between", ValidatesLocally, row="modes", words=WORDS, without=dict.fromkeys(("fsdp", "hsdp"), ALONE))


class Turned(Dropout):
    """Dropout by turns of four steps; nothing is evaluated, as that sets the modes again."""

    def evaluate(self, number: int) -> None:
        pass


def turn(form: Form) -> None:
    HERE.model.drop.train(not HERE.model.drop.training)


for where in ("top", "before", "after", "between"):
    add(
        f"modes.turned.{where}",
        at_place(where, each_epoch(turn), Turned),
        row="modes",
        words=WORDS + "|drop",
        changes_after=where == "after",
        places=THIN,
    )
