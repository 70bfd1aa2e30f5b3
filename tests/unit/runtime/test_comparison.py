"""What ranks must have alike besides parameters: compared, named, or remembered as values of one rank."""

import json
import re
from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
import torch
from torch import nn

from holdfast_runtime import inprocess
from holdfast_runtime.inprocess import Comparison, DivergenceError, Member, Outcome, Standing, TrainingState

DIFFERENT = Outcome(ready=2, mean_loss=0.0, same_step=True, same_digest=True, leaves=0, same_facts=False)


class Counter:
    def __init__(self) -> None:
        self.seen, self.noise = 0, torch.zeros(2)

    def state_dict(self) -> dict[str, Any]:
        return {"seen": self.seen, "noise": self.noise}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.seen, self.noise = state["seen"], state["noise"]


class Rank:
    """One of two ranks; what both send each other is passed by hand."""

    def __init__(self, rank: int, *, recovered: bool = False, first: bool = False) -> None:
        self.counter = Counter()
        self.model = nn.Linear(2, 2)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1)
        self.state = TrainingState(self.model, self.optimizer, scheduler=None, added={"counter": self.counter})
        self.state.reach_boundary()
        self.state.begin(0)
        self.comparison = Comparison(self.state, every=50, sharded=None, wait=lambda _: None)
        step = 7 if recovered and not first else 0
        own = Standing(rank=rank, world_size=2, recovered=recovered, committed_step=step)
        self.member = cast(Member, SimpleNamespace(own=own, agreement=SimpleNamespace(judge=lambda _: None)))

    def judge(self, outcome: Outcome = DIFFERENT) -> None:
        self.comparison.judge_vote(outcome, self.comparison.facts(whole=True), member=self.member)


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> Callable[[Rank, Rank], None]:
    """Has one rank judge with what both send."""

    def exchange(mine: Rank, other: Rank) -> None:
        def gathered(data: bytes, **_: object) -> list[bytes]:
            theirs = answer(other, data)
            return [data, theirs] if mine.member.own.rank == 0 else [theirs, data]

        monkeypatch.setattr("holdfast_runtime.inprocess.comparison.gathered_bytes", gathered)
        mine.judge()

    return exchange


def answer(other: Rank, asked: bytes) -> bytes:
    """What the other rank sends where this one sends facts, or its own values."""
    found: list[bytes] = []

    def gathered(data: bytes, **_: object) -> list[bytes]:
        found.append(data)
        return [data, data]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("holdfast_runtime.inprocess.comparison.gathered_bytes", gathered)
        if asked.startswith(b"{"):
            other.judge()
        else:
            other.state.by_rank = {"state.counter.seen", "state.counter.noise"}
            other.comparison.gather(step=1)
    return found[0]


def test_a_rate_that_differs_after_a_recovery_ends_the_job_with_both_values_and_the_likely_line(
    sent: Callable[[Rank, Rank], None],
) -> None:
    mine, other = Rank(0, recovered=True), Rank(1, recovered=True)
    mine.optimizer.param_groups[0]["lr"] = 0.0127
    mine.state.left_last = 7

    with pytest.raises(
        DivergenceError,
        match=r"\[0\].lr: 0.0127 at rank 0, 0.1 at rank 1; the code around `with step:` ran again for step 7",
    ):
        sent(mine, other)


@pytest.mark.parametrize(
    ("change", "name"),
    [
        (lambda rank: rank.model.eval(), "model..*training|model.*training"),
        (lambda rank: rank.model.requires_grad_(False), "model.trained.weight"),
        (lambda rank: setattr(rank.model, "rate", 0.5), "model.rate"),
        (lambda rank: rank.model.register_forward_hook(lambda *_: None), "hooks"),
        (lambda rank: setattr(rank.counter, "seen", 3), "state.counter.seen"),
        (lambda rank: rank.counter.noise.data.add_(1), "state.counter.noise"),
        (lambda rank: setattr(rank.model, "pool", re.compile("a")), "objects.pool: 'Pattern'.*: make it before Run"),
    ],
    ids=["mode", "frozen", "attribute", "hook", "state", "tensor of state", "object of a library"],
)
def test_each_kind_of_difference_is_named(
    change: Callable[[Rank], object], name: str, sent: Callable[[Rank, Rank], None]
) -> None:
    mine, other = Rank(0, recovered=True), Rank(1, recovered=True)
    change(mine)
    assert digest(mine) != digest(other)

    with pytest.raises(DivergenceError, match=name):
        sent(mine, other)


def test_state_that_differs_when_the_first_step_is_repeated_is_of_each_rank(sent: Callable[[Rank, Rank], None]) -> None:
    mine, other = Rank(0, recovered=True, first=True), Rank(1, recovered=True, first=True)
    mine.counter.seen = 3

    sent(mine, other)

    assert mine.state.by_rank == {"state.counter.seen"}


def test_a_list_of_a_rank_s_own_values_grows_after_a_recovery(sent: Callable[[Rank, Rank], None]) -> None:
    mine, other = Rank(0, recovered=True), Rank(1, recovered=True)
    for rank, values in ((mine, [1, 2]), (other, [1, 3])):
        rank.counter.seen = values  # type: ignore[assignment]
        rank.state.by_rank = {"state.counter.seen[0]"}

    sent(mine, other)

    assert mine.state.by_rank == {"state.counter.seen[0]", "state.counter.seen[1]"}


def digest(rank: Rank) -> int:
    return inprocess.digest_of_facts(rank.comparison.facts(whole=True))


def test_before_any_loss_a_difference_is_of_each_rank_and_travels_with_the_votes(
    sent: Callable[[Rank, Rank], None],
) -> None:
    mine, other = Rank(0), Rank(1)
    mine.counter.seen, other.counter.seen = 3, 5
    mine.counter.noise += 1

    sent(mine, other)

    assert mine.state.by_rank == {"state.counter.seen", "state.counter.noise"}
    assert not any("counter" in str(path) for path in mine.comparison.facts(whole=True))
    mine.state.committed()
    newcomer = Rank(1)
    newcomer.state.load(mine.state.flat(), rank=1)
    newcomer.state.reach_boundary()
    assert (newcomer.counter.seen, newcomer.counter.noise.tolist()) == (5, [0.0, 0.0])


def test_arrays_of_each_rank_travel_with_the_votes_and_differ_also_in_the_middle_of_a_large_one(
    sent: Callable[[Rank, Rank], None],
) -> None:
    mine, other = Rank(0), Rank(1)
    mine.counter.noise, other.counter.noise = np.zeros(5000), np.zeros(5000)  # type: ignore[assignment]
    other.counter.noise[2500] = 1.0
    assert digest(mine) != digest(other)

    sent(mine, other)

    mine.state.committed()
    newcomer = Rank(1)
    newcomer.state.load(mine.state.flat(), rank=1)
    newcomer.state.reach_boundary()
    assert (newcomer.counter.noise[2500], newcomer.counter.noise.sum()) == (1.0, 1.0)


def test_a_value_of_one_rank_that_changes_behind_its_vote_is_lost_with_it_and_named(
    sent: Callable[[Rank, Rank], None],
) -> None:
    mine, other = Rank(0), Rank(1)
    mine.counter.seen = 3
    sent(mine, other)
    mine.state.committed()
    mine.counter.seen += 1

    with pytest.raises(DivergenceError, match=r"state.counter.seen differs by rank, and the value of rank 1 was lost"):
        Rank(1).state.load(mine.state.flat(), rank=1)


def test_all_facts_are_compared_in_the_first_votes_of_a_generation_and_every_so_many_steps() -> None:
    comparison = Rank(0).comparison
    whole = []
    for step in range(60):
        whole.append(comparison.is_whole(generation=1 + step // 30, step=step))
        comparison._votes += 1
    assert [step for step, each in enumerate(whole) if each] == [0, 1, 2, 30, 31, 32, 50]


def test_facts_are_plain_text_on_their_way() -> None:
    rank = Rank(0)
    rank.model.note = "a" * 200  # type: ignore[assignment]
    found = answer(rank, b"{")
    assert all(len(value[0]) <= 60 for value in json.loads(found)["facts"].values())


def test_the_first_vote_of_a_loop_compares_all_and_names_what_may_have_made_a_difference(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rank = Rank(0, recovered=True)
    for step in range(1, 8):
        rank.comparison.is_whole(generation=3, step=step)
        rank.judge(replace(DIFFERENT, same_facts=True))
    assert not rank.comparison.is_whole(generation=3, step=8)

    rank.comparison.begin_loop()

    assert rank.comparison.is_whole(generation=3, step=9)
    monkeypatch.setattr("holdfast_runtime.inprocess.comparison.gathered_bytes", lambda data, **_: [data])
    with pytest.raises(DivergenceError, match=r"ran the code between two loops with variables as at its start"):
        rank.judge(replace(DIFFERENT, same_facts=True, same_digest=False))
    assert not rank.comparison.is_whole(generation=3, step=10)
