"""The service over loopback: who is let in, what is refused at once, and what a stranger cannot make it do."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any

from holdfast_runtime import membership
from holdfast_runtime.control import Deadlines, listen
from holdfast_runtime.membership import Ballot, Commit, Prepare, Promise, View
from holdfast_runtime.witness import OPEN, Limits, Service, WitnessHandlers, WitnessLink

DEADLINES = Deadlines(beat=0.05, heartbeat=5.0)
FIRST = View(generation=1, nodes=(0, 0))


def run(test: "Callable[[Service, int], Coroutine[Any, Any, None]]", limits: Limits | None = None) -> None:
    """A witness for the time of a test."""

    async def all_of_it() -> None:
        service = Service(limits or Limits())
        door = listen("127.0.0.1")
        port = door.getsockname()[1]
        serving = asyncio.create_task(service.serve(door))
        try:
            await asyncio.wait_for(test(service, port), 60.0)
        finally:
            serving.cancel()
            await asyncio.gather(serving, return_exceptions=True)

    asyncio.run(all_of_it())


@dataclass
class End:
    """A launcher's end, and what it was told."""

    port: int
    token: str = "secret"
    claim: int | None = OPEN
    found: list[int] = field(default_factory=list)
    lost: list[str] = field(default_factory=list)
    left: list[int] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    messages: list[membership.Message] = field(default_factory=list)

    def __post_init__(self) -> None:
        handlers = WitnessHandlers(
            address=lambda: ("127.0.0.1", self.port),
            claim=lambda: self.claim,
            found=self.found.append,
            lost=self.lost.append,
            left=lambda: self.left.append(self.found[-1]),
            message=self.messages.append,
            refused=self.refused.append,
        )
        self.link = WitnessLink(run_id="7", seat=2, token=self.token, deadlines=DEADLINES, handlers=handlers)
        self.link.start()


async def until(condition: Callable[[], object]) -> None:
    while not condition():
        await asyncio.sleep(0.002)


async def closing(*ends: End) -> None:
    for end in ends:
        await end.link.close()


def test_one_launcher_opens_a_memory_and_another_joins_it_by_its_identity() -> None:
    async def test(service: Service, port: int) -> None:
        first = End(port)
        await until(lambda: first.found)
        second = End(port, claim=first.found[0])
        await until(lambda: second.found)
        named = View(generation=1, nodes=(0, 0), witness=first.found[0])

        second.link.send(Prepare(2, Ballot(1, 1), named))
        await until(lambda: second.messages and first.messages)

        assert second.found == first.found
        assert len(service.records) == 1
        (promise,) = second.messages
        assert isinstance(promise, Promise)
        assert promise.voter
        assert first.messages == [Commit(named)], "who may not reach the others hears of a view from the witness"
        await closing(first, second)
        await until(lambda: not len(service.records))

    run(test)


def test_a_launcher_with_another_token_is_refused_at_once_and_says_so() -> None:
    async def test(service: Service, port: int) -> None:
        first = End(port)
        await until(lambda: first.found)
        stranger = End(port, token="another", claim=first.found[0])

        await until(lambda: stranger.refused)

        assert stranger.refused == [f"127.0.0.1 port {port} refuses: the run token differs"]
        assert stranger.found == []
        await closing(first, stranger)

    run(test)


def test_a_witness_that_was_started_again_knows_nothing_and_is_another() -> None:
    async def test(service: Service, port: int) -> None:
        end = End(port, claim=12345)
        await until(lambda: end.link.has_forgotten(12345))
        end.claim = OPEN
        await until(lambda: end.found)

        assert end.found[0] != 12345
        assert end.refused == []
        await closing(end)

    run(test)


def test_a_launcher_goes_over_to_the_memory_that_a_view_names() -> None:
    async def test(service: Service, port: int) -> None:
        first, second = End(port), End(port)
        await until(lambda: first.found and second.found)
        assert first.found != second.found

        second.claim = first.found[0]
        second.link.claim_changed()
        await until(lambda: second.found[-1] == first.found[0])

        assert second.left == second.found[:1]
        assert second.lost == [], "the witness was there all the time"
        await closing(first, second)

    run(test)


def test_a_witness_that_takes_no_more_says_so() -> None:
    async def test(service: Service, port: int) -> None:
        first = End(port)
        await until(lambda: first.found)
        second = End(port)
        await until(lambda: second.refused)

        assert second.refused == [f"127.0.0.1 port {port} refuses: this witness serves as many runs as it may"]
        await closing(first, second)

    run(test, Limits(runs=1))


async def answers(port: int, *lines: bytes) -> bytes:
    """All that it says to somebody who says this, until it closes the connection."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        for line in lines:
            writer.write(line)
        return await reader.read()
    except ConnectionError:
        return b""
    finally:
        writer.close()


def test_what_is_no_handshake_ends_the_connection() -> None:
    open_line = {"type": "open", "run_id": "7", "seat": 2, "key": "k", "nonce": "n"}
    wrong = [
        b"GET / HTTP/1.1\r\nHost: here\r\n\r\n",
        b"x" * 5000,
        b"[" * 4000 + b"\n",
        b'{"type": []}\n',
        b"\xff\xfe\n",
        json.dumps({**open_line, "key": "\ud800"}).encode() + b"\n",
        json.dumps({**open_line, "seat": "two"}).encode() + b"\n",
        b'{"type": "join", "identity": 1, "nonce": "n", "proof": "\\ud800"}\n',
        b'{"type": "seated", "identity": 1, "proof": ""}\n',
    ]

    async def test(service: Service, port: int) -> None:
        for line in wrong:
            said = await answers(port, line)
            assert said.count(b"\n") <= 2, line
        good = End(port)
        await until(lambda: good.found)
        await closing(good)

    run(test)


def test_a_line_over_the_limit_ends_the_link_of_an_admitted_launcher_too() -> None:
    async def test(service: Service, port: int) -> None:
        end = End(port)
        await until(lambda: end.found)
        end.link.send(Commit(View(generation=1, nodes=(0,) * 20_000)))

        await until(lambda: end.lost)

        assert end.lost == ["its connection was closed"]
        await closing(end)

    run(test, Limits(line_bytes=10_000))


def test_who_says_nothing_is_not_waited_for() -> None:
    async def test(service: Service, port: int) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        await reader.readline()
        service.sweep(now_s=asyncio.get_running_loop().time() + 6.0)

        assert await read_to_end(reader.read()) == b""
        writer.close()

    run(test)


async def read_to_end(reading: Awaitable[bytes]) -> bytes:
    try:
        return await reading
    except ConnectionError:
        return b""


def test_one_address_does_not_take_all_links() -> None:
    async def test(service: Service, port: int) -> None:
        held = [await asyncio.open_connection("127.0.0.1", port) for _ in range(3)]
        for reader, _ in held:
            assert b"challenge" in await reader.readline()

        assert b"as many links as it may have" in await answers(port)

        for _, writer in held:
            writer.close()

    run(test, Limits(links_per_host=3))
