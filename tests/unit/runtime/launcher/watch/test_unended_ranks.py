"""A process that does not end after SIGKILL: the job goes on without it, and nothing takes its device meanwhile."""

import asyncio
import os
import re
import signal
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from launcher_context import context

from holdfast_runtime.control import Progress
from holdfast_runtime.launcher.node import Ranks
from holdfast_runtime.launcher.ranks import LocalSlots
from holdfast_runtime.membership import Slot, View

PARTS = ("keys", "watch", "judgement", "record", "settling", "departure", "building", "tasks")


class Node:
    """Rank 2 and a warm spare. The process of the rank does not end; it is this one, as far as the kernel is asked."""

    def __init__(self, *, has_device: bool = False, ends: bool = False) -> None:
        self.said: list[str] = []
        self.filled: list[tuple[str, int]] = []
        self.left = 0
        self.process: Any = SimpleNamespace(
            pid=os.getpid(), has_device=has_device, has_message=False, ended=False, kill=lambda *_: None
        )
        self.slots = LocalSlots(node=4, ranks=1, spares=1, world_size=2)
        self.slots.in_process, self.slots.requested = True, "it hangs"
        self.slots.view = View(generation=3, nodes=(0,), spares=(Slot(4, 1),))
        self.rank, self.spare = self.slots
        self.rank.rank, self.rank.generation, self.rank.process = 2, 3, self.process
        self.rank.progress = Progress(step=7, phase="forward")
        anything: Callable[..., None] = lambda *_given, **_named: None  # noqa: E731
        parts: dict[str, Any] = {name: SimpleNamespace(died=anything, warm_changed=anything) for name in PARTS}
        parts["places"] = SimpleNamespace(
            fill=lambda slot: self.filled.append(("now", slot.index)),
            fill_later=lambda slot: self.filled.append(("later", slot.index)),
        )
        journal = SimpleNamespace(say=self.said.append, note=self.said.append, died=anything, event=anything)
        ending = SimpleNamespace(begun=ends, some_finished=False)
        parts["generations"] = SimpleNamespace(trouble=anything, left=self._left)
        self.ranks = Ranks(
            context(self.slots, journal=journal, ending=ending, max_restarts=3), SimpleNamespace(**parts)
        )  # type: ignore[arg-type]

    def _left(self) -> None:
        self.left += self.slots.all_left(first=False)

    def go_on(self) -> None:
        asyncio.run(self.ranks.unended(self.process))

    def end(self) -> None:
        self.process.ended = True
        asyncio.run(self.ranks.ended(self.process, -signal.SIGKILL, "it was killed by SIGKILL"))


@pytest.mark.parametrize("has_device", [False, True])
def test_the_loss_is_reported_with_what_holds_the_process_and_the_next_view_does_not_wait(has_device: bool) -> None:
    node = Node(has_device=has_device)
    node.rank.killed_for = "it had not left within 30 s"

    node.go_on()

    (said,) = node.said
    held = rf"process {os.getpid()} is in state \w, waits in \S+; it had not left within 30 s"
    assert re.fullmatch(f"rank 2 of node 4 is lost: it does not end after SIGKILL: {held}", said), said
    assert node.left == 1
    assert node.rank.process is None


def test_what_has_no_device_leaves_its_place_to_another_process() -> None:
    node = Node()
    node.go_on()
    node.end()
    assert (node.filled, node.rank.blocked) == ([("later", 0)], None)
    assert len(node.said) == 1, "its end is no second loss"


def test_a_place_whose_device_is_held_is_filled_after_the_end_of_what_holds_it() -> None:
    node = Node(has_device=True)
    node.go_on()
    assert node.rank.blocked is node.process
    assert node.slots.status(incarnation=0, host="").places == 1

    node.end()

    assert node.rank.blocked is None
    assert node.filled[-1] == ("now", 0)
    assert node.said[-1] == f"process {os.getpid()} has ended, late after SIGKILL"


def test_a_process_that_ends_meanwhile_is_lost_once() -> None:
    node = Node(has_device=True)

    async def both() -> None:
        node.process.ended = True
        await asyncio.gather(node.ranks.unended(node.process), node.ranks.ended(node.process, -9, "it was killed"))

    asyncio.run(both())

    assert sum("is lost" in text for text in node.said) == 1
    assert node.rank.blocked is None


def test_a_script_that_says_nothing_is_started_again_without_it_and_its_name_is_said() -> None:
    node = Node(has_device=True)
    node.slots.in_process = False
    node.go_on()
    (said,) = node.said
    assert said.startswith(f"rank 2 of node 4 does not end after SIGKILL: process {os.getpid()} is in state")
    assert (node.left, node.rank.blocked) == (1, None)


def test_a_launcher_that_ends_does_not_go_on_without_it() -> None:
    node = Node(ends=True)
    node.go_on()
    assert (node.said, node.rank.process) == ([], node.process)
