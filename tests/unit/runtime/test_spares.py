"""When a launcher tells that what it has is a spare."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from launcher_context import context

from holdfast_common import kinds
from holdfast_runtime.control import Ready
from holdfast_runtime.launcher.node import Ranks
from holdfast_runtime.membership import RankStatus, Slot, View

OTHERS = View(generation=9, nodes=(0, 0), ranks=(RankStatus(slot=Slot(0, 0), rank=0, port=1),))
MINE = View(generation=9, nodes=(0, 0), ranks=(RankStatus(slot=Slot(1, 0), rank=0, port=1),))


class Story:
    """The launcher of node 1, which came back, and the agreement of all."""

    def __init__(self, *, requested: str, belongs: bool = False, has_rank: bool = False) -> None:
        self.told: list[str] = []
        self.left: Callable[[], object] = lambda: None
        self.slot = SimpleNamespace(generation=0, ready=object(), rank=-1, awaited=None)

        class Slots(SimpleNamespace):
            def __iter__(slots) -> Any:  # noqa: N805 - of the story
                return iter([self.slot])

        nothing = SimpleNamespace()
        generations = SimpleNamespace(
            first=False,
            left=lambda: self.left(),
            belongs_to=lambda view: belongs,
            agreement=SimpleNamespace(changed=lambda: None),
        )
        parts: dict[str, Any] = dict.fromkeys(
            ["places", "keys", "watch", "judgement", "record", "settling", "building", "tasks"], nothing
        )
        slots = Slots(
            node=1,
            view=OTHERS,
            requested=requested,
            learn=lambda step: None,
            checkpoint_step=0,
            warm=1,
            in_view=[object()] if has_rank else [],
        )
        journal = SimpleNamespace(event=lambda kind, **detail: self.told.append(kind))
        self.ranks = Ranks(
            context(slots, journal=journal, max_restarts=1),
            SimpleNamespace(  # type: ignore[arg-type]
                generations=generations, departure=SimpleNamespace(warm_changed=lambda: None), **parts
            ),
        )

    def warm(self) -> None:
        ready: Any = SimpleNamespace(committed_step=3, checkpoint_step=0, planned=False, reason="", built=-1, torn="")
        assert {"committed_step", "checkpoint_step", "planned", "reason", "built", "torn"} <= set(
            Ready.__dataclass_fields__
        )
        self.ranks._ready(self.slot, ready)  # type: ignore[arg-type]


@pytest.mark.parametrize(("view", "told"), [(OTHERS, [kinds.SPARE_READY]), (MINE, [])])
def test_one_that_comes_back_while_others_agree_is_a_spare_if_it_gets_no_rank(view: View, told: list[str]) -> None:
    story = Story(requested="launcher 2 is lost")
    story.warm()
    assert story.told == []
    story.ranks.installed(view)
    story.ranks.installed(view)
    assert story.told == told


def test_one_that_comes_back_to_a_job_that_trains_is_a_spare_at_once() -> None:
    story = Story(requested="")
    story.warm()
    assert story.told == [kinds.SPARE_READY]


@pytest.mark.parametrize(("has_rank", "told"), [(False, [kinds.SPARE_READY]), (True, [])])
def test_one_that_got_no_rank_before_its_process_was_warm_is_a_spare_from_then_on(
    has_rank: bool, told: list[str]
) -> None:
    """All nodes of the job are in the view that the others agreed on meanwhile."""
    story = Story(requested="", belongs=True, has_rank=has_rank)
    story.ranks.installed(OTHERS)
    story.warm()
    assert story.told == told


def test_one_whose_warm_process_is_all_that_the_others_waited_for_is_a_spare_as_well() -> None:
    """They agree before this launcher does anything else."""
    story = Story(requested="launcher 2 is lost")
    story.left = lambda: story.ranks.installed(OTHERS)
    story.warm()
    assert story.told == [kinds.SPARE_READY]
