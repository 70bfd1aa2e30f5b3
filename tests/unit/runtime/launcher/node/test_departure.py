"""When a launcher gives its ranks away, and when it says that it cannot."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from launcher_context import context

from holdfast_common import node_socket
from holdfast_runtime.control import HandOver
from holdfast_runtime.launcher.generation import Departure
from holdfast_runtime.launcher.links import HandOverAt
from holdfast_runtime.membership import RankStatus, Slot, View

COMMAND = node_socket.Command(id="1", command="hand-over", reason="Xid 79")
VIEW = View(
    generation=4, nodes=(0, 0, 0), ranks=tuple(RankStatus(slot=Slot(node, 0), rank=node, port=1) for node in range(2))
)


class Links:
    def __init__(self) -> None:
        self.told: list[Any] = []
        self.up = {0, 2}

    def broadcast(self, message: object) -> None:
        self.told.append(message)

    def send(self, node: int, message: object) -> None:
        self.told.append((node, message))


class Process:
    def __init__(self) -> None:
        self.killed = False

    def kill(self) -> None:
        self.killed = True


class Told:
    def __init__(self) -> None:
        self.sent: list[object] = []
        self.rank = 1
        self.process: Process | None = Process()

    def send(self, message: object) -> None:
        self.sent.append(message)


class Story:
    """A launcher of node 1, which has rank 1, beside another one with a rank and a spare."""

    def __init__(self, **changes: Any) -> None:
        self.slot, self.links = Told(), Links()
        self.answers: list[node_socket.Answer] = []
        self.now_s, self.timers = 100.0, []  # type: float, list[tuple[float, Callable[[], None]]]
        self.filled = 0
        self.builds_at_once, self.built = True, lambda: None
        self.asked_for: tuple[list[int], dict[int, int]] | None = None
        self.slots = SimpleNamespace(
            node=1, in_view=[self.slot], in_process=True, some_finished=False, leaving=False, quarantined=False,
            known_step=30, checkpoint_step=20, warm=0, view=VIEW, requested="",
        )  # fmt: skip
        self.ending = SimpleNamespace(begun=False, some_finished=False, depart=self._depart)
        self.departed: tuple[int, str] | None = None
        self.departure = Departure(
            context(
                self.slots,
                links=self.links,
                journal=SimpleNamespace(say=lambda _text: None, tell=lambda _text: None),
                ending=self.ending,
                timer=lambda after_s, call: self.timers.append((self.now_s + after_s, call)),
                nodes=3,
                world_sizes=(),
            ),
            failed=self._failed,
            clock=lambda: self.now_s,
            building=SimpleNamespace(for_others=self._build),  # type: ignore[arg-type]
        )
        self.departure.spares_of(2, changes.pop("spares", 1))
        for name, value in changes.items():
            setattr(next((part for part in (self.slots, self.links) if hasattr(part, name)), self), name, value)

    def ask(self, command: node_socket.Command = COMMAND) -> str:
        self.departure.ask(command, self.answers.append)
        return self.answers[-1].outcome

    def pass_time(self, for_s: float) -> None:
        until_s = self.now_s + for_s
        while due := [one for one in self.timers if one[0] <= until_s]:
            first = min(due, key=lambda one: one[0])
            self.timers.remove(first)
            self.now_s = first[0]
            first[1]()
        self.now_s = until_s

    def steps(self, count: int, *, each_s: float) -> None:
        for _ in range(count):
            self.pass_time(each_s)
            self.slots.known_step += 1
            self.departure.stepped()

    def _build(self, ranks: Sequence[int], spares: Mapping[int, int], then: Callable[[], None]) -> None:
        self.asked_for = [*ranks], dict(spares)
        if self.builds_at_once:
            then()
        else:
            self.built = then

    def _depart(self, code: int, reason: str) -> None:
        self.departed = code, reason

    def _failed(self) -> None:
        self.filled += 1


def test_it_tells_all_and_its_own_ranks_when_to_leave_and_gives_none_of_its_processes() -> None:
    story = Story()

    assert story.ask() == "begun"
    assert HandOverAt(generation=4, after_step=32, reason="Xid 79") in story.links.told
    assert story.slot.sent == [HandOver(generation=4, after_step=32)]
    assert story.slots.leaving


def test_it_ends_once_all_ranks_of_the_view_without_it_are_there_and_not_before() -> None:
    story = Story()
    story.ask()
    story.slots.view = View(generation=5, nodes=(0, -1, 0), ranks=VIEW.ranks[:1] * 2, resume_step=32)

    story.departure.installed(story.slots.view)
    assert story.departed is None
    story.departure.settled(story.slots.view, {})

    assert story.departed is not None
    assert story.departed[0] == 75
    done = story.answers[-1]
    assert (done.outcome, done.ranks, done.step, done.steps_lost) == ("done", (1,), 32, 0)


def test_it_stays_where_the_next_view_needs_it_and_says_so() -> None:
    story = Story()
    story.ask()

    story.departure.installed(View(generation=5, nodes=(0, 0, -1), ranks=VIEW.ranks, resume_step=31))

    assert (story.answers[-1].outcome, story.slots.leaving, story.filled) == ("failed", False, 1)
    assert story.ask() == "begun", "it may be asked again"


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"spares": 0}, "0 warm processes on other nodes, 1 required"),
        ({"up": {2}}, "1 votes would remain, 2 required"),
        ({"view": View(generation=1, nodes=(0, 0, 0))}, "not connected yet"),
    ],
)
def test_it_puts_off_what_cannot_be_now_and_changes_nothing(changes: dict[str, Any], why: str) -> None:
    story = Story(**changes)

    assert story.ask() == "later"
    assert why in story.answers[-1].reason
    assert (story.links.told, story.slot.sent, story.slots.leaving) == ([], [], False)


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"in_process": False}, "does not use holdfast_runtime"),
        ({"some_finished": True}, "the job ends"),
    ],
)
def test_it_refuses_what_can_never_be_and_changes_nothing(changes: dict[str, Any], why: str) -> None:
    story = Story(**changes)

    assert story.ask() == "refused"
    assert why in story.answers[-1].reason
    assert (story.links.told, story.slot.sent, story.slots.leaving) == ([], [], False)


@pytest.mark.parametrize(("nodes", "lost"), [((0, 1), 0), ((1, 1), 10)], ids=["others have it", "nobody else has it"])
def test_a_refusal_says_what_would_be_lost(nodes: tuple[int, int], lost: int) -> None:
    ranks = tuple(RankStatus(slot=Slot(node, 0), rank=rank, port=1) for rank, node in enumerate(nodes))
    story = Story(spares=0, view=View(generation=4, nodes=(0, 0, 0), ranks=ranks))

    story.ask()

    assert story.answers[-1].steps_lost == lost


def test_in_a_recovery_it_waits_until_the_ranks_are_together_again() -> None:
    story = Story(requested="rank 0 is lost")

    assert story.ask() == "begun"
    assert story.slot.sent == []

    story.slots.requested, story.slots.view = "", View(generation=5, nodes=(0, 0, 0), ranks=VIEW.ranks)
    story.departure.installed(story.slots.view)
    story.departure.settled(story.slots.view, {})
    assert story.slot.sent == [HandOver(generation=5, after_step=32)]


def test_who_asks_twice_hears_of_the_same_one() -> None:
    story = Story()
    story.ask()
    again: list[node_socket.Answer] = []
    ask: Callable[[], None] = lambda: story.departure.ask(  # noqa: E731
        node_socket.Command(id="2", command="hand-over"), again.append
    )

    ask()

    assert [(answer.id, answer.outcome) for answer in again] == [("2", "begun")]
    assert len(story.slot.sent) == 1


def test_an_announcement_of_another_generation_is_no_longer_of_use() -> None:
    story = Story()

    story.departure.announced(0, HandOverAt(generation=3, after_step=9, reason=""))

    assert story.slot.sent == []


URGENT = node_socket.Command(id="1", command="hand-over", reason="the mount stalls", urgent=True)


def asked_urgently(story: Story) -> Process:
    process = story.slot.process
    assert process is not None
    story.departure.ask(URGENT, story.answers.append)
    return process


def test_ranks_that_pass_no_step_are_ended_where_the_node_cannot_be_relied_on() -> None:
    story = Story()
    story.steps(5, each_s=0.2)
    process = asked_urgently(story)
    story.pass_time(1.9)
    assert not process.killed
    story.pass_time(1.0)
    assert process.killed
    story.slot.process = None
    story.pass_time(60)
    assert story.departed is None, "what ended is a loss as any other"


def test_what_does_not_even_end_when_killed_is_left_behind_with_its_launcher() -> None:
    story = Story()
    story.steps(5, each_s=0.2)
    asked_urgently(story)
    story.pass_time(10)
    assert story.departed is not None
    assert story.departed[0] == 75


def test_slow_steps_are_no_standing_still() -> None:
    story = Story()
    story.steps(5, each_s=30.0)
    process = asked_urgently(story)
    story.steps(3, each_s=40.0)
    assert not process.killed


def test_a_hand_over_that_may_wait_ends_nobody() -> None:
    story = Story()
    story.ask()
    story.pass_time(600)
    assert (story.slot.process is not None and story.slot.process.killed, story.departed) == (False, None)


def test_a_launcher_whose_node_is_taken_ends_and_tells_nobody_to_stop() -> None:
    story = Story()
    story.departure.abandon("Xid 79")
    assert story.departed is not None
    assert story.links.told == []


def test_it_waits_until_spares_of_others_are_built_for_its_ranks() -> None:
    story = Story(builds_at_once=False)

    assert story.ask() == "begun"
    assert story.asked_for == ([1], {2: 1})
    assert announced(story) == []

    story.built()

    assert [message.after_step for message in announced(story)] == [32]
    assert story.slots.leaving


def test_an_urgent_one_does_not_wait_for_spares() -> None:
    story = Story(builds_at_once=False)

    story.ask(replace(COMMAND, urgent=True))

    assert story.asked_for is None
    assert len(announced(story)) == 1


def test_it_fails_where_no_spare_is_left_when_they_would_be_built() -> None:
    story = Story(builds_at_once=False)
    story.ask()
    story.departure.spares_of(2, 0)

    story.built()

    assert (story.answers[-1].outcome, story.slots.leaving, announced(story)) == ("failed", False, [])


def test_it_begins_again_after_a_loss_while_spares_were_built() -> None:
    story = Story(builds_at_once=False)
    story.ask()
    story.slots.requested = "rank 0 is lost"

    story.built()

    assert announced(story) == []

    story.slots.view, story.slots.requested, story.builds_at_once = replace(VIEW, generation=5), "", True
    story.departure.installed(story.slots.view)
    story.departure.settled(story.slots.view, {})

    assert [message.generation for message in announced(story)] == [5]


def announced(story: Story) -> list[HandOverAt]:
    return [message for message in story.links.told if isinstance(message, HandOverAt)]
