"""How a launcher takes a wish for another size, and when it announces the change."""

from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

from launcher_context import context

from holdfast_runtime.launcher.generation import Resizing
from holdfast_runtime.launcher.links import SizeAsked
from holdfast_runtime.membership import STEADY_S, Asked, RankStatus, Slot, View


class Story:
    """The launcher of node 0, which has rank 0, in a job of 2, 3 or 4 nodes that has so many."""

    def __init__(self, *, size: int = 4, spares: int = 0, sizes: tuple[int, ...] = (2, 3, 4)) -> None:
        self.told: list[Any] = []
        self.announced: list[str] = []
        self.timers: list[Callable[[], None]] = []
        self.now_s = 100.0
        self.departure: Any = SimpleNamespace(spares=spares, announce=self.announced.append)
        ranks = tuple(RankStatus(slot=Slot(rank, 0), rank=rank, port=1) for rank in range(size))
        view = View(generation=3, nodes=(0,) * 4, ranks=ranks)
        self.slots = SimpleNamespace(
            node=0, warm=0, asked=Asked(), in_process=True, some_finished=False, view=view, requested=""
        )
        self.ending = SimpleNamespace(begun=False, some_finished=False)
        links: Any = SimpleNamespace(broadcast=self.told.append, send=lambda node, what: self.told.append((node, what)))
        journal: Any = SimpleNamespace(tell=lambda _text: None)
        self.resizing = Resizing(
            context(
                self.slots,
                links=links,
                journal=journal,
                ending=self.ending,
                timer=lambda _after_s, call: self.timers.append(call),
                world_sizes=sizes,
                processes=1,
            ),
            departure=self.departure,
            clock=lambda: self.now_s,
        )
        self.resizing.settled(self.slots.view)

    def has(self, size: int) -> None:
        """The job goes on at a size, with nobody that waits."""
        ranks = tuple(RankStatus(slot=Slot(rank, 0), rank=rank, port=1) for rank in range(size))
        view = self.slots.view
        self.slots.view = replace(view, generation=view.generation + 1, ranks=ranks)
        self.departure.spares = 0
        self.resizing.settled(self.slots.view)

    def look(self) -> None:
        self.timers.pop(0)()


def test_a_wish_is_told_to_all_and_the_change_announced_once() -> None:
    story = Story()

    assert story.resizing.ask(2) == ""
    story.look()

    assert story.told == [SizeAsked(Asked(1, 2))]
    assert story.announced == ["the job goes on with 2 ranks in place of 4"]


def test_wishes_that_cannot_be_are_refused_and_nobody_hears_of_them() -> None:
    story = Story()

    assert story.resizing.ask(5) == "5 nodes are asked for; allowed: 2, 3, 4"
    assert "the job is not elastic" in Story(sizes=()).resizing.ask(2)
    story.ending.begun = True
    assert story.resizing.ask(2) == "the job ends"
    story.ending.begun, story.slots.in_process = False, False
    assert "does not use holdfast_runtime" in story.resizing.ask(2)
    assert (story.told, story.announced, story.slots.asked) == ([], [], Asked())


def test_of_three_wishes_at_once_the_last_one_is_left() -> None:
    story = Story()

    for nodes in (2, 3, 4):
        story.resizing.ask(nodes)

    assert story.slots.asked == Asked(3, 4)
    story.resizing.heard(Asked(2, 3))
    assert story.slots.asked == Asked(3, 4), "what comes late is older"


def test_it_waits_for_a_recovery_to_end() -> None:
    story = Story()
    story.slots.requested = "rank 1 is lost"

    story.resizing.ask(2)
    assert story.announced == []
    story.slots.requested = ""
    story.look()
    assert len(story.announced) == 1


def test_the_job_grows_into_processes_that_stay_and_not_before() -> None:
    story = Story(size=3, spares=1)

    story.look()
    assert story.announced == []
    story.now_s += STEADY_S
    story.look()
    assert story.announced == ["the job goes on with 4 ranks in place of 3"]


def test_processes_that_come_and_go_are_no_growth() -> None:
    story = Story(size=3)

    for turn in range(10):
        story.departure.spares = turn % 2
        story.now_s += 0.7 * STEADY_S
        story.look()

    assert story.announced == []


def test_capacity_that_comes_for_five_seconds_and_goes_is_taken_once_each_time() -> None:
    story = Story(size=3)

    for tick in range(120):
        story.now_s += 0.5
        if tick % 20 == 0:
            story.departure.spares = 1
        elif tick % 20 == 10:
            story.has(3)  # it is lost with its rank
        before = len(story.announced)
        story.look()
        if len(story.announced) > before:
            story.has(4)

    assert len(story.announced) == 6, "of 60 s, and not at each look"


def test_only_the_launcher_of_rank_0_announces() -> None:
    story = Story()
    story.slots.node = 1

    story.resizing.ask(2)

    assert (story.told, story.announced) == ([SizeAsked(Asked(1, 2))], [])


def test_a_launcher_that_comes_later_hears_the_wish() -> None:
    story = Story()
    story.resizing.ask(2)

    story.resizing.up(3)

    assert story.told[-1] == (3, SizeAsked(Asked(1, 2)))
