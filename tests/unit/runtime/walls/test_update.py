"""An update counts when every rank has voted for it, at the same step and with the same parameters."""

from types import SimpleNamespace
from typing import cast

import pytest
import torch

from holdfast_runtime import inprocess
from holdfast_runtime.inprocess import Agreement, BrokenError, DivergenceError, Standing


def judge(*votes: tuple[int, int], world_size: int = 3) -> None:
    """What a rank makes of these votes, of step and digest."""
    total = torch.zeros(inprocess.LENGTH)
    for step, digest in votes:
        one = torch.zeros(inprocess.LENGTH)
        inprocess.cast(one, step=step, digest=digest, loss=0.5)
        total += one
    agreement = SimpleNamespace(_own=Standing(world_size=world_size, rank=0, committed_step=7))
    Agreement.judge(cast(Agreement, agreement), inprocess.count(total, world_size=world_size))


def test_three_equal_votes_of_three_are_an_update() -> None:
    judge((7, 5), (7, 5), (7, 5))


def test_two_votes_of_three_are_none() -> None:
    with pytest.raises(BrokenError, match="2 of 3 ranks are ready"):
        judge((7, 5), (7, 5))


def test_votes_at_different_steps_are_none() -> None:
    with pytest.raises(DivergenceError, match="different steps"):
        judge((7, 5), (8, 5), (7, 5))


def test_votes_with_different_parameters_are_none() -> None:
    with pytest.raises(DivergenceError, match="the parameters of the ranks are different"):
        judge((7, 5), (7, 6), (7, 5))
