"""What follows when a rank is killed and its memory is still to be given back."""

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from holdfast_runtime.launcher.node import Ranks

PARTS = [
    "slots",
    "places",
    "generations",
    "keys",
    "watch",
    "judgement",
    "links",
    "journal",
    "ending",
    "record",
    "settling",
    "departure",
    "building",
]


class Node:
    """Ranks of a node of which one is dying, and what was done."""

    def __init__(self, *, has_device: bool = False, rank: int = 2, epoch: int = 3, **more: bool) -> None:
        self.troubles: list[str] = []
        self.ended: list[str] = []
        silent = asyncio.Event()
        silent.set()
        self.process = SimpleNamespace(has_device=has_device, has_said=False)
        slot = SimpleNamespace(
            rank=rank, epoch=epoch, silent=silent, process=self.process, finished=more.get("finished", False)
        )
        parts: dict[str, Any] = dict.fromkeys(PARTS)
        parts["slots"] = SimpleNamespace(of=lambda _process: slot, some_finished=slot.finished, node=4)
        parts["ending"] = SimpleNamespace(begun=more.get("ends", False))
        parts["generations"] = SimpleNamespace(trouble=self.troubles.append)
        self.ranks = Ranks(**parts, max_restarts=3)
        self.ranks.ended = self._ended  # type: ignore[method-assign]

    async def _ended(self, _process: object, _code: int, how: str) -> None:
        self.ended.append(how)

    def die(self) -> None:
        asyncio.run(self.ranks.dying(self.process, -9, "it was killed by SIGKILL"))  # type: ignore[arg-type]


def test_a_rank_without_a_device_counts_as_dead_at_once() -> None:
    node = Node()

    node.die()

    assert (node.ended, node.troubles) == (["it was killed by SIGKILL"], [])


def test_a_rank_with_a_device_is_replaced_after_its_end_but_the_others_leave_at_once() -> None:
    node = Node(has_device=True)

    node.die()

    assert (node.ended, node.troubles) == ([], ["rank 2 of node 4 is lost: it was killed by SIGKILL"])


@pytest.mark.parametrize(
    "state", [{"rank": -1}, {"epoch": 0}, {"finished": True}, {"ends": True}], ids=["spare", "new", "finished", "ends"]
)
def test_the_end_of_any_other_process_is_waited_for(state: dict[str, Any]) -> None:
    node = Node(**state)

    node.die()

    assert (node.ended, node.troubles) == ([], [])
