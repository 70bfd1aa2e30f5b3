"""A large job's links over loopback: a few connections for each launcher, and all others through them."""

import asyncio
from dataclasses import replace

import pytest
from link_ends import CALM, End, opened, run, until
from overlay_job import large_ends

from holdfast_runtime.control import Deadlines
from holdfast_runtime.launcher.links import Trouble
from holdfast_runtime.overlay import NEIGHBOURS

SIZE = 14


PROMPT = replace(CALM, heartbeat=2.0)
"""Where a silent launcher has to be lost: on a busy machine others wait ten of it, after ten from the first view."""


async def job(deadlines: Deadlines = CALM) -> list[End]:
    """Launchers that have all heard of each other and are connected to those that they want."""
    ends = large_ends(SIZE, deadlines=deadlines)
    for end in ends:
        await end.open(*opened[:3])
    await until(lambda: all(len(end.links.up) == SIZE - 1 for end in ends))
    await until(lambda: all(not missing(end) for end in ends))
    return ends


def missing(end: End) -> frozenset[int]:
    reach = end.links._reach
    return reach._overlay.desired() - end.links._links.keys()


def test_in_a_large_job_what_one_says_reaches_all_once_and_one_alone_where_it_is_for_one() -> None:
    async def test() -> None:
        ends = await job()
        everyone = Trouble(generation=1, reason="to all")
        ends[3].links.broadcast(everyone)
        for to in range(1, SIZE):
            ends[0].links.send(to, Trouble(generation=to, reason="to one"))
        await until(lambda: all(len(end.messages) == 2 for end in ends[1:3] + ends[4:]))
        await until(lambda: bool(ends[0].messages and ends[3].messages))

        for node, end in enumerate(ends):
            expected = [(3, everyone)] * (node != 3) + [(0, Trouble(generation=node, reason="to one"))] * (node != 0)
            assert sorted(end.messages, key=str) == sorted(expected, key=str)
        assert all(end.down == [] and len(end.up) == SIZE - 1 for end in ends)

    run(test())


def test_in_a_large_job_a_launcher_whose_connections_are_closed_is_lost_for_all_and_another_takes_its_place() -> None:
    async def test() -> None:
        ends = await job()
        killed, others = ends[5], [end for end in ends if end is not ends[5]]
        crash(killed)
        await until(lambda: all([node for node, _ in end.down] == [5] for end in others))
        assert all(5 not in end.links.up for end in others)

        second = large_ends(SIZE, deadlines=CALM)[5]
        await second.open(*others[:1])
        await until(lambda: all((5, 1) in end.up for end in others))
        await until(lambda: len(second.links.up) == SIZE - 1)

        assert second.links.incarnation == 1
        assert all(len(end.down) == 1 for end in others)

    run(test())


def crash(end: End) -> None:
    """As a process that is killed: nothing is said, all is closed."""
    links = end.links
    links._closing = True
    if links._server is not None:
        links._server.close()
    links._reach.close(last=False)
    for link in links._links.values():
        link.writer.transport.abort()


@pytest.mark.e2e
def test_in_a_large_job_one_that_falls_silent_is_lost_for_all() -> None:
    async def test() -> None:
        ends = await job(PROMPT)
        others = [end for end in ends if end is not ends[5]]
        freeze(ends[5])

        await until(lambda: all(5 in [node for node, _ in end.down] for end in others))

        assert all(node == 5 for end in others for node, _ in end.down)

    run(test())


def freeze(end: End) -> None:
    """As a process that is stopped: its connections stay, and it says nothing, also to who calls it anew."""
    links = end.links
    assert links._server is not None
    for listening in links._server.sockets:
        asyncio.get_running_loop().remove_reader(listening.fileno())
    links._reach.close(last=False)
    for link in links._links.values():
        link.replaced = True


def test_in_a_large_job_nobody_is_watched_before_there_is_a_view() -> None:
    async def test() -> None:
        ends = large_ends(12)
        for end in ends:
            await end.open(*ends[: end.links._me.node], formed=False)
        await until(lambda: all(len(end.up) == 11 for end in ends))
        await asyncio.sleep(0.5)
        assert not any(link.watched for end in ends for link in end.links._links.values())

        for end in ends:
            end.links.formed()

        asked = 2 * NEIGHBOURS
        await until(lambda: all(sum(link.watched for link in end.links._links.values()) == asked for end in ends))
        assert all(end.down == [] for end in ends)

    run(test())


def test_in_a_large_job_connections_are_looked_at_in_one_turn_also_after_one_was_ended_by_that() -> None:
    async def test() -> None:
        ends = await job()
        highest = ends[-1].links._reach
        unneeded = next(iter(highest._hooks.links.values()))
        highest._since_s[unneeded.peer.node] = -1000.0
        highest._overlay.roster.ring.remove(unneeded.peer.node)
        highest._kept[unneeded.peer.node], unneeded.needed = True, False

        highest._tend()

        assert unneeded.replaced
        await asyncio.sleep(0.3)
        waiting = asyncio.get_running_loop()._scheduled  # type: ignore[attr-defined]
        turns = [each for each in waiting if not each.cancelled() and each._callback == highest._tend]
        assert len(turns) == 1

    run(test())
