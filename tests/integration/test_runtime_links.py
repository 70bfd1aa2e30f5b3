"""Links between launchers, over loopback: who makes them, who takes whose place, and that no message is lost."""

import asyncio
import math
import os
import re
import socket
import sys
import threading
from collections.abc import Coroutine
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from killing import PYTHONPATH
from link_ends import PATIENT, End, opened, run, until
from ports import free_ports

from holdfast_runtime.control import Deadlines, listen
from holdfast_runtime.launcher.links import (
    HANDSHAKE,
    LINK,
    Challenge,
    Hello,
    Links,
    Proofs,
    SealedLine,
    Trouble,
    Warm,
)
from holdfast_runtime.overlay import Member, Packet, Suspicion


@pytest.mark.parametrize("family", [socket.AF_INET, socket.AF_INET6])
def test_a_launcher_is_found_at_its_port_with_either_family(family: socket.AddressFamily) -> None:
    async def test() -> None:
        end = await End(0).open()
        loop = asyncio.get_running_loop()
        with socket.socket(family, socket.SOCK_STREAM) as caller:
            caller.setblocking(False)
            await loop.sock_connect(caller, ("127.0.0.1" if family == socket.AF_INET else "::1", end.links.port))
            assert await loop.sock_recv(caller, 1)

    with listen() as door:
        if family == socket.AF_INET6 != door.family:
            pytest.skip("this machine has no IPv6")
    run(test())


def test_a_launcher_that_is_opened_has_one_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Links] = []
    make = Links._make_reach

    def counted(links: Links) -> Any:
        made.append(links)
        return make(links)

    monkeypatch.setattr(Links, "_make_reach", counted)

    async def test() -> None:
        end = await End(0).open()
        assert made == [end.links]

    run(test())


def test_a_launcher_whose_port_is_taken_is_closed_without_a_word() -> None:
    async def test() -> None:
        end = End(0)
        with listen() as door, pytest.raises(OSError, match="in use"):
            await end.open(port=door.getsockname()[1])
        assert end.links.up == frozenset()

    run(test())


def test_the_reason_of_an_old_connection_is_none_of_a_launcher_that_has_answered_since() -> None:
    others = [Member(node, f"{node:02x}", 0, "127.0.0.1", 1) for node in (1, 2, 3)]

    async def test() -> None:
        end = await End(0, deadlines=PATIENT).open()
        reach: Any = end.links._reach
        one, two = (SimpleNamespace(peer=peer, has_received=True) for peer in others[:2])
        reach.heard(two, Packet(tuple(others), (), ()))
        reach.linked(one)
        reach.ended(one, "its connection was closed")
        reach.heard(two, Packet((replace(others[0], turn=1),), (), ()))
        reach.heard(two, Packet((), tuple(Suspicion(1, "01", 1, node) for node in (2, 3)), ()))
        await until(lambda: bool(end.down))
        assert end.down == [(1, "reported as lost by nodes 2, 3")]

    run(test())


def crash(end: End) -> None:
    """As a process that is killed: nothing is said, all is closed."""
    end.links._closing = True
    if end.links._server is not None:
        end.links._server.close()
    for link in end.links._links.values():
        link.writer.transport.abort()
    for task in end.links._calls._dialling.values():
        task.cancel()


@pytest.mark.parametrize("knows", ["the lower node", "the higher node", "both"])
def test_two_launchers_make_one_link_whoever_knows_the_other_and_lose_nothing(knows: str) -> None:
    async def test() -> None:
        low, high = End(0), End(1)
        await low.open()
        await high.open(*[low] * (knows != "the lower node"))
        if knows != "the higher node":
            low.links._calls.dial(("127.0.0.1", high.links.port))
        await until(lambda: bool(low.up and high.up))
        for number in range(50):
            low.links.send(1, Trouble(generation=number, reason=""))
            high.links.send(0, Trouble(generation=number, reason=""))
            await asyncio.sleep(0)

        await until(lambda: len(low.messages) == len(high.messages) == 50)
        await asyncio.sleep(0.3)

        assert (low.up, high.up) == ([(1, 0)], [(0, 0)])
        assert low.down == high.down == []

    run(test())


@pytest.mark.parametrize("node", [0, 2])
def test_a_launcher_that_is_called_at_the_address_of_one_that_was_lost_learns_that_it_is_another(node: int) -> None:
    async def test() -> None:
        first, survivor = End(node), End(1)
        await first.open()
        await survivor.open(first)
        await until(lambda: bool(survivor.up and first.up))
        port = first.links.port
        crash(first)
        second = End(node)
        # It knows nobody, so it is the survivor that calls, or that is shown where to.
        await second.open(*[survivor] * (node == 2), port=port)

        await until(lambda: bool(second.up))
        await until(lambda: len(survivor.up) == 2)

        assert second.links.incarnation == 1
        assert survivor.up == [(node, 0), (node, 1)]
        assert survivor.down[0][0] == node
        assert second.taken == []

    run(test())


@pytest.mark.parametrize("settled", [False, True], ids=["in no view", "in a view"])
def test_two_launchers_that_are_replaced_at_once_and_meet_each_other_first_begin_anew(settled: bool) -> None:
    """Only one that has a place in a view would lose something by that, and ends."""

    async def test() -> None:
        low, survivor, high = await End(0).open(), End(1), End(2)
        await survivor.open(low)
        await high.open(survivor)
        await until(lambda: len(survivor.up) == 2 and bool(low.up and high.up))  # a crash closes what is established
        named = {low.links.identity, high.links.identity}
        crash(low)
        crash(high)
        await until(lambda: not survivor.links.up)
        newcomers = await End(0).open(), End(2)
        await newcomers[1].open(newcomers[0])
        await until(lambda: all(end.up for end in newcomers))
        assert [end.links.incarnation for end in newcomers] == [0, 0]
        newcomers[0].settled = settled
        named |= {end.links.identity for end in newcomers}

        for end in newcomers:
            end.show(("127.0.0.1", survivor.links.port))
        await until(lambda: bool(newcomers[0].taken) if settled else survivor.links.up == {0, 2})

        if settled:
            assert newcomers[0].taken == ["another launcher has the place of node 0"]
            return
        await until(lambda: newcomers[0].links.up == {1, 2} and newcomers[1].links.up == {0, 1})
        named |= {end.links.identity for end in newcomers}
        assert [end.taken for end in (survivor, *newcomers)] == [[], [], []]
        assert {(0, 1), (2, 1)} <= {*survivor.up}
        assert len(named) == 6  # what one promised that forgot it counts for no other

    run(test())


def test_a_launcher_learns_that_it_replaced_another_from_one_that_has_only_heard_of_that() -> None:
    async def test() -> None:
        survivor, first = await End(1).open(), End(2)
        await first.open(survivor)
        await until(lambda: bool(survivor.up and first.up))  # a crash closes what is established
        crash(first)
        await until(lambda: not survivor.links.up)
        other = await End(0).open()
        survivor.links._calls.dial(("127.0.0.1", other.links.port))
        await until(lambda: bool(other.up))
        crash(survivor)

        second = await End(2).open(other)
        await until(lambda: bool(second.up))

        assert (second.links.incarnation, other.up[-1]) == (1, (2, 1))

    run(test())


def test_an_incarnation_that_two_launchers_had_is_used_up_for_both() -> None:
    async def test() -> None:
        here, first, second = await End(0).open(), End(1), End(1)
        for uid, incarnation in (("a", 0), ("a", 0), ("b", 0), ("a", 0)):
            here.links._others.note(1, uid, incarnation)
        assert here.links._others._met == {1: ("", 0)}

        await first.open(here)
        await until(lambda: bool(first.up))
        assert first.links.incarnation == 1
        crash(first)
        await second.open(here)
        await until(lambda: bool(second.up))
        assert second.links.incarnation == 2

    run(test())


async def greeted(end: End, node: int) -> tuple[asyncio.StreamWriter, SealedLine]:
    """The end of a launcher's connection to another one after the handshake, with nothing behind it."""
    reader, writer = await asyncio.open_connection("127.0.0.1", end.links.port)
    challenge = HANDSHAKE.decode(await reader.readline())
    assert isinstance(challenge, Challenge)
    proofs = Proofs(run_id="run", token="secret")
    hello = Hello(node, 0, f"{node:012x}", "run", "127.0.0.1", 1, met=(), nonce="nonce")
    own = proofs.call(hello, challenge=challenge.nonce)
    writer.write(HANDSHAKE.encode(own) + b"\n")
    assert isinstance(HANDSHAKE.decode(await reader.readline()), Hello)
    return writer, SealedLine(proofs.key(challenge=challenge.nonce, call=own), calling=True)


def test_in_a_large_job_who_gives_up_a_handshake_is_not_accused_and_who_has_spoken_is() -> None:
    """On a machine that is busy with the start of 200 the answer comes after the caller's deadline."""

    async def test() -> None:
        end = await End(0, size=20, deadlines=PATIENT).open()
        gives_up, _ = await greeted(end, 5)
        speaks, sealed = await greeted(end, 6)
        speaks.write(sealed.seal(LINK.encode(Warm())))
        await until(lambda: end.messages == [(6, Warm())])
        assert end.links.up == {5, 6}

        gives_up.close()
        speaks.close()
        await until(lambda: not end.links._links)

        assert [node for node, _, _ in end.links._reach._overlay.roster.suspected] == [6]

    run(test())


def test_a_launcher_that_ends_takes_no_link_that_a_handshake_still_brings() -> None:
    """Nobody would answer the other side, whose every recovery would wait for it until the deadline."""

    async def test() -> None:
        ending, other = End(0), End(1)
        await ending.open()
        await other.open(ending)
        await until(lambda: bool(ending.up and other.up))
        link, late = next(iter(ending.links._links.values())), asyncio.StreamReader()
        ending.links._links.clear()
        ending.links._closing = True

        await asyncio.wait_for(ending.links._serve(link, late), 20.0)

        assert ending.links._links == {}

    run(test())


def silent_s(why: str) -> float:
    """From the deadline to ten of it: a launcher that is late itself waits longer; nan for another reason."""
    found = re.fullmatch(r"it was silent for ([0-9.]+) s", why)
    return float(found[1]) if found else math.nan


def test_a_launcher_that_says_nothing_is_lost_after_the_heartbeat_deadline() -> None:
    async def test() -> None:
        low, high = End(0), End(1)
        await low.open()
        await high.open(low)
        await until(lambda: bool(low.up and high.up))
        for link in high.links._links.values():
            link.replaced = True  # no more beats of it, though its connection stays

        await until(lambda: bool(low.down))

        node, why = low.down[0]
        assert node == 1
        assert 0.4 <= silent_s(why) <= 4.0

    run(test())


def test_a_launcher_whose_signs_of_life_came_late_may_be_silent_for_longer() -> None:
    async def test() -> None:
        low, high = End(0), End(1)
        await low.open()
        await high.open(low)
        await until(lambda: bool(low.up and high.up))
        low.links._links[1].late_s = 0.4
        for link in high.links._links.values():
            link.replaced = True  # no more beats of it, though its connection stays

        await until(lambda: bool(low.down))

        assert silent_s(low.down[0][1]) >= 0.4 + 4 * 0.3

    run(test())


@pytest.mark.parametrize("busy", ["for a while", "for ever"])
def test_a_launcher_that_is_busy_is_not_lost_unless_it_never_comes_back_to_its_work(busy: str) -> None:
    """Its beats come from a thread of their own, which ends them where the one that works seems to stand still."""
    deadlines = Deadlines(beat=0.1, heartbeat=1.0, frozen=1.5 if busy == "for ever" else 10.0)
    ready, told, over = threading.Event(), threading.Event(), threading.Event()

    async def watching(other: End) -> None:
        await other.open()
        await until(lambda: bool(other.up))
        other.links._beats._strict_s = 0.0  # as in a job that runs; while it forms, a silence may be longer
        ready.set()
        await until(lambda: bool(other.down) or over.is_set())
        told.set()

    async def working(other: End) -> None:
        end = await End(1, deadlines=deadlines).open(other)
        await until(lambda: bool(end.up) and ready.is_set())
        await asyncio.sleep(deadlines.beat)
        lost = told.wait(3 * deadlines.heartbeat if busy == "for a while" else 30.0)  # the whole event loop waits
        over.set()
        opened.remove(end)
        await end.links.close()
        assert lost == (busy == "for ever")

    async def test() -> None:
        other = End(0, deadlines=deadlines)
        watcher = asyncio.get_running_loop().create_task(watching(other))
        await until(lambda: other.links.port > 0)
        await asyncio.to_thread(run_alone, working(other))
        await watcher

    run(test())


def run_alone(work: Coroutine[Any, Any, None]) -> None:
    """In an event loop of its own, as another process would."""
    asyncio.run(work)


@pytest.mark.parametrize("met", ["before", "after"])
def test_a_launcher_that_hears_that_processes_live_through_faults_tells_all_the_others(
    met: str, tmp_path: Path
) -> None:
    """Else one that another asked for a view could still end its processes for it, where the first was not heard."""

    async def test() -> None:
        (port,) = free_ports(1)
        # The fourth launcher never comes, so that no view is asked for.
        peers = f"127.0.0.1:{port},127.0.0.1:1,127.0.0.1:2,127.0.0.1:3"
        options = ("--peers", peers, "--node-rank", "0", "--rdzv-id", "run", "--socket", str(tmp_path / "0.sock"))
        options = (*options, "--deadlines", f"heartbeat={PATIENT.heartbeat},minority=90")
        launcher = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "holdfast_runtime.launcher", "--preload", "json", *options, "never.py"),
            env={**os.environ, "PYTHONPATH": PYTHONPATH, "HOLDFAST_TOKEN": "secret"},
            stderr=asyncio.subprocess.DEVNULL,
        )
        try:
            first, second = await End(1, deadlines=PATIENT).open(), await End(2, deadlines=PATIENT).open()
            first.show(("127.0.0.1", port))
            await until(lambda: bool(first.up))
            if met == "before":
                second.show(("127.0.0.1", port))
                await until(lambda: bool(second.up))
            first.links.send(0, Warm())
            if met == "after":
                await until(lambda: (0, Warm()) in first.messages)  # it was told on, to the one that said it too
                second.show(("127.0.0.1", port))

            await until(lambda: (0, Warm()) in second.messages)
        finally:
            launcher.terminate()
            await launcher.wait()

    run(test())
