"""Schedulers of torch that a program did not give to ``Run`` are found."""

import pytest
import torch
from torch import nn
from torch.optim import lr_scheduler

from holdfast_runtime.state import Schedulers


def optimizer() -> torch.optim.Optimizer:
    return torch.optim.SGD(nn.Linear(1, 1).parameters(), lr=0.1)


def test_schedulers_made_before_and_after_are_found_and_those_of_other_optimizers_are_not() -> None:
    mine, other = optimizer(), optimizer()
    first = lr_scheduler.ExponentialLR(mine, 0.9)
    stranger = lr_scheduler.ExponentialLR(other, 0.9)
    found = Schedulers(mine, known=[])

    assert found.all() == [first]
    second = lr_scheduler.ReduceLROnPlateau(mine)
    later = lr_scheduler.StepLR(other, 1)

    assert found.all() == [first, second]
    assert stranger not in found.all()
    assert later not in found.all()


def test_what_another_scheduler_steps_or_run_was_given_is_left_out() -> None:
    mine = optimizer()
    known = lr_scheduler.LambdaLR(mine, lambda step: 1 / (1 + step))
    whole = lr_scheduler.SequentialLR(
        mine, [lr_scheduler.ConstantLR(mine), lr_scheduler.ExponentialLR(mine, 0.9)], milestones=[2]
    )

    assert Schedulers(mine, known=[known]).all() == [whole]


def test_those_that_an_object_in_state_holds_are_left_out() -> None:
    class Container:
        def __init__(self) -> None:
            self.schedulers = [lr_scheduler.ExponentialLR(mine, 0.9), lr_scheduler.ExponentialLR(mine, 0.8)]

    mine = optimizer()

    assert Schedulers(mine, known=[Container()]).all() == []


def test_a_scheduler_that_is_gone_is_found_no_more() -> None:
    mine = optimizer()
    found = Schedulers(mine, known=[])
    lr_scheduler.ExponentialLR(mine, 0.9)

    assert found.all() == []


def test_two_of_one_class_are_refused_with_the_way_to_keep_them() -> None:
    mine = optimizer()
    both = [lr_scheduler.ExponentialLR(mine, 0.9), lr_scheduler.ExponentialLR(mine, 0.8)]

    with pytest.raises(ValueError, match=r"2 schedulers change the optimizer .* give all of them to Run\(state="):
        Schedulers(mine, known=[]).all()
    assert Schedulers(mine, known=both).all() == []


def test_two_that_hold_each_other_are_refused_unless_they_are_given() -> None:
    mine = optimizer()
    outer, inner = lr_scheduler.ExponentialLR(mine, 0.9), lr_scheduler.StepLR(mine, 2)
    outer.inner, inner.outer = inner, outer  # type: ignore[attr-defined]

    with pytest.raises(ValueError, match=r"holds one that holds it.*state="):
        Schedulers(mine, known=[]).all()
    assert Schedulers(mine, known=[outer]).all() == []
