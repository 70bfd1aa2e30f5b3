"""When a launcher has its spares make their models, and what it does where they cannot."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from launcher_context import context

from holdfast_runtime.control import Build, Deadlines, Ready
from holdfast_runtime.launcher.generation import Building
from holdfast_runtime.launcher.links import BuildAt, BuiltAt
from holdfast_runtime.launcher.ranks import LocalSlot, LocalSlots
from holdfast_runtime.membership import RankStatus, Slot, View

VIEW = View(
    generation=4,
    nodes=(0, 0, 0),
    ranks=tuple(RankStatus(slot=Slot(rank // 2, rank % 2), rank=rank) for rank in range(4)),
    resume_step=9,
)


class Process:
    def __init__(self) -> None:
        self.killed = False

    def kill(self) -> None:
        self.killed = True


class Story:
    """The launcher of a node, its two spares, and the others."""

    def __init__(self, *, node: int = 2, ranks: int = 0, **ready: Any) -> None:
        self.slots = LocalSlots(node=node, ranks=ranks, spares=2)
        self.slots.known_step, self.slots.view = 20, VIEW
        self.told: dict[int, list[Any]] = {}
        self.said: list[str] = []
        self.sent: list[tuple[int, object]] = []
        self.timers: list[tuple[float, Callable[[], None]]] = []
        self.replaced: list[int] = []
        self.ready = ready
        for slot in self.slots:
            if slot.index < ranks:
                slot.rank, slot.generation = 2 * node + slot.index, 4
            else:
                self.starts(slot)
        self.building = Building(
            context(
                self.slots,
                links=SimpleNamespace(send=lambda to, message: self.sent.append((to, message))),
                journal=SimpleNamespace(tell=self.said.append),
                ending=SimpleNamespace(begun=False),
                timer=lambda after_s, call: self.timers.append((after_s, call)),
            ),
            replace=self._replace,
        )

    def starts(self, slot: LocalSlot) -> None:
        """A process is there, and waits."""
        heard = self.told.setdefault(slot.index, [])
        slot.process = Process()  # type: ignore[assignment]
        slot.send = heard.append  # type: ignore[method-assign]
        slot.ready = Ready(committed_step=0, state="none", **{"buildable": "anywhere", **self.ready})

    def trains(self) -> None:
        """All ranks are together, and were for a while."""
        self.building.settled(VIEW)
        self.pass_time(1.0)

    def pass_time(self, for_s: float) -> None:
        due = [timer for timer in self.timers if timer[0] <= for_s]
        self.timers = [timer for timer in self.timers if timer[0] > for_s]
        for _, call in due:
            call()

    def is_built(self, index: int, *, moves: bool = False) -> None:
        """A spare says that it has its model."""
        slot = self.slots[index]
        slot.ready = Ready(committed_step=0, state="none", built=slot.built, moves=moves)
        self.building.look()

    def _replace(self, slot: LocalSlot) -> None:
        slot.give_way()
        self.replaced.append(slot.index)


def builds(story: Story) -> dict[int, list[int]]:
    return {index: [message.rank for message in heard] for index, heard in story.told.items()}


def test_spares_are_built_once_the_ranks_have_been_together_for_a_while() -> None:
    story = Story()
    story.building.look()

    assert builds(story) == {0: [], 1: []}

    story.trains()

    assert builds(story) == {0: [1], 1: [0]}
    assert story.told[0] == [Build(rank=1, world_size=4, step=19)]


def test_the_first_steps_of_ranks_of_the_same_node_do_not_wait_for_what_spares_do() -> None:
    story = Story(node=1, ranks=2)
    story.slots.known_step = VIEW.resume_step + 1

    story.trains()
    assert builds(story) == {2: [], 3: []}

    story.slots.known_step += 1
    story.pass_time(1.0)
    assert builds(story) == {2: [3], 3: [2]}


def test_a_node_without_ranks_does_not_wait_to_hear_that_the_ranks_are_together() -> None:
    apart, beside = Story(), Story(node=1, ranks=2)
    for story in (apart, beside):
        story.building.installed(VIEW)
        story.pass_time(1.0)

    assert builds(apart) == {0: [1], 1: [0]}
    assert builds(beside) == {2: [], 3: []}


def test_nothing_is_built_while_another_view_is_wanted() -> None:
    story = Story()
    story.slots.requested = "rank 0 is lost"

    story.trains()

    assert builds(story) == {0: [], 1: []}


def test_a_job_whose_models_are_not_sharded_is_left_alone() -> None:
    story = Story(buildable="")

    story.trains()

    assert builds(story) == {0: [], 1: []}


def test_beside_ranks_no_model_takes_the_memory_of_their_gpus() -> None:
    beside, apart = Story(node=1, ranks=2, buildable="apart"), Story(buildable="apart")

    beside.trains()
    apart.trains()

    assert builds(beside) == {2: [], 3: []}
    assert builds(apart) == {0: [1], 1: [0]}


def test_a_script_that_cannot_be_tried_is_said_once_and_its_spare_begins_anew() -> None:
    story = Story()
    story.trains()

    story.building.cold(story.slots[0], "ValueError: no (train.py:3, in main)")
    story.starts(story.slots[0])
    story.building.look()

    assert story.replaced == [0]
    assert builds(story)[0] == [1]
    (said,) = story.said
    assert said.startswith("node 2: spare warm-up failed: ")
    assert said.endswith("ValueError: no (train.py:3, in main); spares will start cold")


def test_a_spare_that_got_a_rank_before_it_failed_is_not_replaced_in_silence() -> None:
    story = Story()
    story.trains()
    story.slots[0].generation, story.slots[0].rank = 5, 1

    story.building.cold(story.slots[0], "no")

    assert story.replaced == []


def test_after_a_second_death_of_one_that_was_built_no_other_is() -> None:
    story = Story()
    story.trains()
    for _ in range(2):
        story.slots[0].vacate()
        story.building.died()
        story.starts(story.slots[0])
        story.building.look()

    assert builds(story)[0] == [1, 1]
    assert story.slots[0].deaths == 0, "the job does not end for it"
    assert story.said == [
        "node 2: spare warm-up failed: 2 spares have died while they made their model; spares will start cold"
    ]


def test_one_that_does_not_come_to_an_end_is_replaced() -> None:
    story = Story()
    story.trains()
    story.is_built(1)

    story.pass_time(Deadlines().start)

    assert story.replaced == [0]
    assert story.said == [
        "node 2: spare warm-up failed: a spare did not build the model of rank 1 within 1800 s; spares will start cold"
    ]


def test_a_spare_of_another_rank_begins_anew_for_one_that_is_given_away() -> None:
    story = Story()
    story.trains()
    story.is_built(0)
    story.is_built(1)

    story.building.asked(1, BuildAt(generation=4, ranks=(0, 3)))

    assert story.replaced == [0]
    assert story.sent == []

    story.starts(story.slots[0])
    story.building.look()
    story.is_built(0)

    assert builds(story) == {0: [1, 3], 1: [0]}
    assert story.sent == [(1, BuiltAt(generation=4))]


def test_a_spare_that_can_become_any_rank_is_ready_for_one_that_is_given_away() -> None:
    story = Story()
    story.trains()
    story.is_built(0, moves=True)

    story.building.asked(1, BuildAt(generation=4, ranks=(3,)))

    assert (story.replaced, story.sent) == ([], [(1, BuiltAt(generation=4))])


def test_who_cannot_build_says_so_at_once_and_one_that_has_just_begun_later() -> None:
    cold, new = Story(), Story()
    cold.trains()
    cold.building.cold(cold.slots[0], "no")

    cold.building.asked(1, BuildAt(generation=4, ranks=(3,)))
    new.building.asked(1, BuildAt(generation=4, ranks=(3,)))

    assert cold.sent == [(1, BuiltAt(generation=4))]
    assert new.sent == []

    new.trains()
    new.is_built(0)

    assert new.sent == [(1, BuiltAt(generation=4))]


def test_ranks_leave_once_all_that_were_asked_have_answered_or_had_their_time() -> None:
    for answers in (True, False):
        story, left = Story(node=0, ranks=2), []  # type: Story, list[int]
        story.slots.survives = object()  # type: ignore[assignment]

        story.building.for_others([0, 1], {1: 1, 2: 1}, lambda left=left: left.append(1))  # type: ignore[misc]

        assert story.sent == [(1, BuildAt(generation=4, ranks=(0,))), (2, BuildAt(generation=4, ranks=(1,)))]
        story.building.answered(1, BuiltAt(generation=4))
        story.building.answered(1, BuiltAt(generation=4))
        assert left == []
        if answers:
            story.building.answered(2, BuiltAt(generation=4))
        story.pass_time(Deadlines().view)
        assert left == [1]


def test_ranks_of_a_job_that_is_not_sharded_leave_at_once() -> None:
    story, left = Story(node=0, ranks=2), []  # type: Story, list[int]

    story.building.for_others([0, 1], {1: 1, 2: 1}, lambda: left.append(1))

    assert (left, story.sent) == ([1], [])
