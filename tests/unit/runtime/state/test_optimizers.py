"""Optimizers around another one, whose state is not in their own."""

from collections import defaultdict
from typing import Any

import torch
from torch import nn

from holdfast_runtime.inprocess import TrainingState


class Lookahead(torch.optim.Optimizer):
    """As timm has it: groups, state and its dict are those of the inner optimizer."""

    def __init__(self, inner: torch.optim.Optimizer) -> None:
        self._base_optimizer, self.param_groups, self.defaults = inner, inner.param_groups, inner.defaults
        self.state = defaultdict(dict)

    def step(self, closure: Any = None) -> Any:
        return self._base_optimizer.step(closure)

    def state_dict(self) -> dict[str, Any]:
        return self._base_optimizer.state_dict()

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        self._base_optimizer.load_state_dict(state_dict)
        self.param_groups = self._base_optimizer.param_groups


def made(*, updates: int) -> TrainingState:
    model = nn.Linear(2, 1).to(torch.bfloat16)
    inner = torch.optim.Adagrad(model.parameters(), lr=0.1)
    for state in inner.state.values():
        state["sum"] = state["sum"].float()
    for _ in range(updates):
        for parameter in model.parameters():
            parameter.grad = torch.ones_like(parameter)
        inner.step()
    return TrainingState(model, Lookahead(inner), scheduler=None, added={})


def moments(state: TrainingState) -> list[Any]:
    return [(each["sum"].dtype, each["sum"].tolist()) for each in state.optimizer.state_dict()["state"].values()]


def test_a_newcomer_and_the_next_one_get_the_state_of_an_optimizer_inside_of_another() -> None:
    donor, first, second = made(updates=3), made(updates=1), made(updates=0)

    first.load(donor.flat())
    second.load(first.flat())  # whose first step has not begun
    for each in (first, second):
        each.reach_boundary()

    assert moments(donor) == moments(first) == moments(second)


def test_an_update_that_was_tried_leaves_nothing_in_an_optimizer_inside_of_another() -> None:
    tried = made(updates=1)
    tried.forget()

    assert not tried.optimizer.state_dict()["state"]
