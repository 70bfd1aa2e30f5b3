"""Another user of a node at the port of a launcher, and in the place of one: nothing is learned, said or ended."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Coroutine
from typing import Any

import pytest
from link_ends import End, run, until

from holdfast_runtime.launcher.links import HANDSHAKE, LINK, Challenge, Done, Hello, Refused, at_the_other_end

RUN = "run"


def hello(**changes: object) -> Hello:
    values: dict[str, object] = {
        "node": 1, "incarnation": 0, "uid": "x", "run_id": RUN, "host": "127.0.0.1", "port": 9, "met": (),
        "nonce": "00", "proof": "",
    }  # fmt: skip
    return Hello(**{**values, **changes})  # type: ignore[arg-type]


@contextlib.asynccontextmanager
async def line_to(port: int) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        yield reader, writer
    finally:
        writer.close()


@contextlib.asynccontextmanager
async def listener(
    talk: Callable[[asyncio.StreamReader, asyncio.StreamWriter], Coroutine[Any, Any, None]],
) -> AsyncIterator[int]:
    """The port of somebody who listens where a launcher calls. All that he has open is closed at the end."""
    tasks: set[asyncio.Task[None]] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(asyncio.CancelledError, OSError, asyncio.IncompleteReadError):
            await talk(reader, writer)
        writer.close()

    def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        tasks.add(asyncio.get_running_loop().create_task(serve(reader, writer)))

    server = await asyncio.start_server(accept, "127.0.0.1", 0)
    try:
        yield int(server.sockets[0].getsockname()[1])
    finally:
        server.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks)


@pytest.mark.parametrize("guess", ["", "0" * 64, "17"])
def test_a_caller_without_the_token_is_told_so_and_heard_no_further(guess: str) -> None:
    async def test() -> None:
        end = await End(0).open()
        async with line_to(end.links.port) as (reader, writer):
            await reader.readline()
            writer.write(HANDSHAKE.encode(hello(proof=guess)) + b"\n" + LINK.encode(Done(1, "end")) + b"\n")
            answer = HANDSHAKE.decode(await reader.readline())
            rest = await reader.read()

        assert answer == Refused("token", "its run token differs")
        assert rest == b""
        assert (end.up, end.messages, end.taken) == ([], [], [])
        assert len(end.strangers) == 1
        assert "127.0.0.1: its run token differs" in end.strangers[0]

    run(test())


def test_launchers_of_two_runs_at_one_port_say_so_on_both_sides() -> None:
    async def test() -> None:
        here, there = await End(0).open(), End(1, run_id="another")
        await there.open(here)
        await until(lambda: bool(here.strangers and there.strangers))

        assert "its run name differs" in here.strangers[0]
        assert "refused by the launcher at" in there.strangers[0]

    run(test())


def test_what_strangers_say_over_and_over_is_told_once() -> None:
    async def test() -> None:
        here, there = await End(0).open(), End(1, token="another")
        await there.open(here)
        await asyncio.sleep(0.6)

        assert (len(here.strangers), len(there.strangers)) == (1, 1)

    run(test())


def test_a_proof_that_was_made_for_another_challenge_opens_nothing() -> None:
    """Who listens where a launcher calls gets a proof over a nonce of his choice: here, that of the launcher itself."""

    async def test() -> None:
        victim = await End(1).open()

        async def ask_for_a_proof(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            async with line_to(victim.links.port) as (far_reader, far_writer):
                writer.write(await far_reader.readline())
                call = HANDSHAKE.decode(await reader.readline())
                assert isinstance(call, Hello)
                far_writer.write(HANDSHAKE.encode(hello(node=2, nonce=call.nonce, proof=call.proof)) + b"\n")
                await far_reader.readline()

        async with listener(ask_for_a_proof) as port:
            victim.links._calls.dial(("127.0.0.1", port))
            await until(lambda: bool(victim.strangers))

        assert (victim.up, victim.messages, victim.taken) == ([], [], [])

    run(test())


@pytest.mark.parametrize("say", [LINK.encode(Done(1, "end")) + b"\n", b"\0\0\0\5" + b"\0" * 16 + b"hello"])
def test_who_passes_a_handshake_on_can_say_nothing_on_the_link(say: bytes) -> None:
    async def test() -> None:
        low, high = await End(0).open(), End(1)
        await high.open()
        ended: list[str] = []
        low.links._reach.ended = lambda _link, why: ended.append(why)  # type: ignore[method-assign]

        async def pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            async with line_to(low.links.port) as (far_reader, far_writer):
                writer.write(await far_reader.readline())
                far_writer.write(await reader.readline())
                writer.write(await far_reader.readline())
                writer.write(say)
                far_writer.write(say)
                await asyncio.Event().wait()

        async with listener(pass_on) as port:
            high.links._calls.dial(("127.0.0.1", port))
            await until(lambda: bool(ended))

        assert low.messages == high.messages == []
        assert low.taken == high.taken == []
        assert "protocol error" in ended[0]

    run(test())


def test_a_refusal_without_a_proof_ends_nothing() -> None:
    """It could name an incarnation that makes a launcher take itself for replaced."""

    async def test() -> None:
        low, high = await End(0).open(), End(1)
        await high.open(low)
        await until(lambda: bool(low.up and high.up))

        async def refuse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writer.write(HANDSHAKE.encode(Challenge(nonce="00")) + b"\n")
            await reader.readline()
            writer.write(HANDSHAKE.encode(Refused("replaced", "node 1 was replaced", 99)) + b"\n")
            await writer.drain()

        async with listener(refuse) as port:
            high.links._calls.dial(("127.0.0.1", port))
            await until(lambda: bool(high.strangers))

        assert (high.taken, high.down, high.links.incarnation) == ([], [], 0)

    run(test())


def test_what_a_stranger_says_is_not_repeated_word_for_word() -> None:
    told = at_the_other_end(Refused("itself", "\x1b[2J" * 1000), ("h", 1))

    assert told.startswith("the program at h port 1 does not have the token of this run")
    assert len(told) < 200
