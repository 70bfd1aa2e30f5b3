"""What a launcher makes of the words of its ranks and of a view, without any process."""

import asyncio
from collections.abc import Callable

import pytest

from holdfast_runtime.control import Progress, Ready
from holdfast_runtime.launcher.links import identity_of
from holdfast_runtime.launcher.node import BEGINNINGS, Launcher
from holdfast_runtime.launcher.settings import parse_options
from holdfast_runtime.membership import Commit, RankStatus, Slot, View
from holdfast_runtime.overlay import Member


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
                await asyncio.gather(*launcher.tasks.cancel(), return_exceptions=True)

        asyncio.run(inside())

    return run


With = Callable[[Callable[[Launcher], None]], None]


def test_a_step_that_a_rank_has_finished_is_remembered_after_it_is_gone(with_launcher: With) -> None:
    def act(launcher: Launcher) -> None:
        launcher.ranks.receive(launcher.slots[0], Progress(step=7, phase="forward"))
        launcher.slots[0].vacate()
        assert launcher.slots.known_step == 7

    with_launcher(act)


def test_the_step_at_which_a_rank_has_left_is_remembered_too(with_launcher: With) -> None:
    def act(launcher: Launcher) -> None:
        launcher.ranks.receive(launcher.slots[0], Ready(committed_step=9, state="valid"))
        assert launcher.slots.known_step == 9

    with_launcher(act)


@pytest.mark.parametrize(("named", "rank"), [("it", 0), ("another", -1)])
def test_a_launcher_that_took_anothers_place_has_none_of_its_ranks(with_launcher: With, named: str, rank: int) -> None:
    ranks = tuple(RankStatus(slot=Slot(node, 0), rank=node) for node in (0, 1))

    def act(launcher: Launcher) -> None:
        identity = launcher.links.identity + (named == "another")
        launcher.generations.install(View(generation=3, nodes=(identity, identity), ranks=ranks))
        assert launcher.slots[0].rank == rank

    with_launcher(act)


@pytest.mark.parametrize("named", [True, False])
def test_a_launcher_that_a_view_names_does_not_begin_anew(with_launcher: With, named: bool) -> None:
    """Its ranks would go on beside those of the launcher that has its place."""

    def act(launcher: Launcher) -> None:
        identity = launcher.links.identity if named else launcher.links.identity + 1
        launcher.generations.agreement.message(1, Commit(View(generation=3, nodes=(identity, 0))))
        assert launcher.slots.view.generation == 3

        assert launcher.peers.restart() is not named

        assert launcher.slots.view.generation == (3 if named else 0)

    with_launcher(act)


def test_a_launcher_that_is_met_is_told_from_the_one_that_it_replaced(with_launcher: With) -> None:
    met = Member(node=1, uid="c0ffee", incarnation=1, host="h", port=1)

    def act(launcher: Launcher) -> None:
        for name in (identity_of(met.uid), identity_of(met.uid) + 1):
            launcher.generations.agreement.message(
                1, Commit(View(generation=launcher.slots.view.generation + 1, nodes=(0, name)))
            )
            launcher.peers.up(met)
            assert launcher.generations.agreement._node.is_named(1) is (name == identity_of(met.uid))

    with_launcher(act)


def test_two_launchers_of_one_place_do_not_take_it_from_each_other_for_ever(with_launcher: With) -> None:
    def act(launcher: Launcher) -> None:
        assert [launcher.peers.restart() for _ in range(BEGINNINGS + 1)] == [True] * BEGINNINGS + [False]

    with_launcher(act)


def test_the_first_launchers_vote_under_names_of_their_own_and_those_that_replaced_others_do_not(
    with_launcher: With,
) -> None:
    def act(launcher: Launcher) -> None:
        first = launcher.generations.agreement._node
        assert (first.votes, first.incarnation) == (True, launcher.links.identity)
        assert launcher.peers.restart()
        launcher.links._others.incarnation = 1
        assert not launcher.generations.agreement._node.votes

    with_launcher(act)
