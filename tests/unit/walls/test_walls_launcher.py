"""What a launcher makes of the words of its ranks and of a view, without any process."""

import asyncio
from collections.abc import Callable

import pytest

from holdfast_runtime.control import Progress, Ready
from holdfast_runtime.launcher._launcher import Launcher
from holdfast_runtime.launcher._options import parse_options
from holdfast_runtime.membership import RankStatus, Slot, View


@pytest.fixture
def with_launcher() -> Callable[[Callable[[Launcher], None]], None]:
    """Do something with the launcher of node 0 of two, which runs nothing."""

    def run(action: Callable[[Launcher], None]) -> None:
        async def inside() -> None:
            arguments = ["--peers", "127.0.0.1:1,127.0.0.1:2", "--node-rank", "0", "never.py"]
            launcher = Launcher(parse_options(arguments, {"HOLDFAST_TOKEN": "of a test"}))
            try:
                action(launcher)
            finally:
                for task in launcher._tasks:
                    task.cancel()
                await asyncio.gather(*launcher._tasks, return_exceptions=True)

        asyncio.run(inside())

    return run


With = Callable[[Callable[[Launcher], None]], None]


def test_a_step_that_a_rank_has_finished_is_remembered_after_it_is_gone(with_launcher: With) -> None:
    def act(launcher: Launcher) -> None:
        launcher._rank_says(launcher.slots[0], Progress(step=7, phase="forward"))
        launcher.slots[0].vacate()
        assert launcher.slots.known_step == 7

    with_launcher(act)


def test_the_step_at_which_a_rank_has_left_is_remembered_too(with_launcher: With) -> None:
    def act(launcher: Launcher) -> None:
        launcher._rank_says(launcher.slots[0], Ready(committed_step=9, state="valid"))
        assert launcher.slots.known_step == 9

    with_launcher(act)


@pytest.mark.parametrize(("incarnation", "rank"), [(0, 0), (1, -1)])
def test_a_launcher_that_took_anothers_place_has_none_of_its_ranks(
    with_launcher: With, incarnation: int, rank: int
) -> None:
    view = View(epoch=3, nodes=(0, 0), ranks=tuple(RankStatus(slot=Slot(node, 0), rank=node) for node in (0, 1)))

    def act(launcher: Launcher) -> None:
        launcher.links.incarnation = incarnation
        launcher._install(view)
        assert launcher.slots[0].rank == rank

    with_launcher(act)
