"""A state that is refused is tried for a few times, unless something that may come could bring another."""

import asyncio
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from launcher_context import context

from holdfast_runtime.control import Progress, Ready
from holdfast_runtime.launcher.ranks import LocalSlot
from holdfast_runtime.launcher.watch import Judgement
from holdfast_runtime.membership import RankStatus, Slot, View
from holdfast_runtime.patience import Refusals, refused

VIEW = View(
    generation=2,
    nodes=(0, 0),
    ranks=(RankStatus(slot=Slot(0, 0), rank=0), RankStatus(slot=Slot(1, 0), rank=1)),
    resume_step=4,
    sources=("buddy", "memory"),
    donors=((1,), ()),
)
REASON = "rank 0 of node 0: the snapshot did not arrive"


def ended(*views: View) -> list[str]:
    """What the job ends with after rank 0 was refused its state in each of these views."""
    found: list[str] = []

    async def run() -> None:
        nothing: Any = SimpleNamespace(say=lambda _text: None, tell=lambda _text: None)
        ending: Any = SimpleNamespace(begun=False, notes=[], end=lambda _code, reason: found.append(reason))
        judgement = Judgement(context(nothing, journal=nothing, ending=ending))
        for view in views:
            judgement.installed(view, reason="rank 1 is lost")
            assert judgement.refused(REASON) == bool(found)

    asyncio.run(run())
    return found


def after(number: int, **facts: object) -> View:
    return replace(VIEW, generation=VIEW.generation + number, **facts)  # type: ignore[arg-type]


def test_the_same_processes_that_are_refused_the_same_state_three_times_end_the_job() -> None:
    found = ended(after(0), after(1), after(2))

    assert found == [f"{REASON}; 3 generations of the same processes failed so: trying again does not help"]


@pytest.mark.parametrize(
    "other",
    [
        pytest.param({"nodes": (0, -1)}, id="a launcher is out of reach"),
        pytest.param({"resume_step": 2}, id="an older step"),
        pytest.param({"donors": ((), ())}, id="another donor"),
        pytest.param({"ranks": (replace(VIEW.ranks[0], slot=Slot(0, 1)), VIEW.ranks[1])}, id="another process"),
    ],
)
def test_a_refusal_that_something_may_heal_is_tried_again(other: dict[str, object]) -> None:
    assert ended(after(0), after(1), after(2, **other)) == []


def test_two_ranks_that_are_refused_in_one_generation_count_once() -> None:
    refusals = Refusals()
    for generation in (2, 2, 2, 3, 3):
        refusals = refused(refusals, plan=("a plan",), generation=generation)

    assert refusals.generations == (2, 3)
    assert not refusals.final


def said(*messages: Progress | Ready) -> LocalSlot:
    slot = LocalSlot(0)
    for message in messages:
        slot._note(message)
    return slot


def test_a_rank_that_votes_without_having_begun_a_step_has_done_all_steps() -> None:
    finished, step = Progress(step=5, phase="other"), Progress(step=5, phase="forward")
    vote, left = Progress(step=5, phase="vote"), Ready(committed_step=5, state="valid")

    assert said(finished, vote, left).done
    assert not said(finished, step, vote, left).done
    assert not said(finished, left).done
    assert not said(finished, vote, replace(left, planned=True)).done, "a hand-over: it leaves between two steps"
