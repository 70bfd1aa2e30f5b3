"""Links between launchers, over loopback: who makes them, who takes whose place, and that no message is lost."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from holdfast_runtime.control import Deadlines
from holdfast_runtime.launcher._links import Handlers, Identity, Links
from holdfast_runtime.launcher._wire import Hello, LinkMessage, Trouble

DEADLINES = Deadlines(beat=0.05, heartbeat=0.4)


class End:
    """One launcher's links, and what they have told."""

    def __init__(self, node: int) -> None:
        self.up: list[tuple[int, int]] = []
        """Node and incarnation."""
        self.down: list[tuple[int, str]] = []
        self.messages: list[tuple[int, LinkMessage]] = []
        self.taken: list[str] = []
        handlers = Handlers(up=self._up, down=self._down, message=self._message, taken=self.taken.append)
        identity = Identity(node=node, run_id="run", token="secret")
        self.links = Links(identity, host="127.0.0.1", deadlines=DEADLINES, handlers=handlers)

    async def open(self, *others: "End", port: int = 0) -> "End":
        await self.links.open(port=port, known=tuple(("127.0.0.1", other.links.port) for other in others))
        return self

    def _up(self, peer: Hello) -> None:
        self.up.append((peer.node, peer.incarnation))

    def _down(self, node: int, why: str) -> None:
        self.down.append((node, why))

    def _message(self, node: int, message: LinkMessage) -> None:
        self.messages.append((node, message))


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(10.0):
        while not condition():
            await asyncio.sleep(0.005)


def run(test: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(test, 30.0))


def crash(end: End) -> None:
    """As a process that is killed: nothing is said, all is closed."""
    end.links._closing = True
    if end.links._server is not None:
        end.links._server.close()
    for link in end.links._links.values():
        link.writer.transport.abort()
    for task in end.links._dialling.values():
        task.cancel()


@pytest.mark.parametrize("knows", ["the lower node", "the higher node", "both"])
def test_two_launchers_make_one_link_whoever_knows_the_other_and_lose_nothing(knows: str) -> None:
    async def test() -> None:
        low, high = End(0), End(1)
        await low.open()
        await high.open(*[low] * (knows != "the lower node"))
        if knows != "the higher node":
            low.links._dial(("127.0.0.1", high.links.port))
        await until(lambda: bool(low.up and high.up))
        for number in range(50):
            low.links.send(1, Trouble(epoch=number, reason=""))
            high.links.send(0, Trouble(epoch=number, reason=""))
            await asyncio.sleep(0)

        await until(lambda: len(low.messages) == len(high.messages) == 50)
        await asyncio.sleep(0.3)

        assert (low.up, high.up) == ([(1, 0)], [(0, 0)])
        assert low.down == high.down == []
        await low.links.close()
        await high.links.close()

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
        await second.links.close()
        await survivor.links.close()

    run(test())


def test_a_launcher_that_says_nothing_is_lost_after_the_heartbeat_deadline() -> None:
    async def test() -> None:
        low, high = End(0), End(1)
        await low.open()
        await high.open(low)
        await until(lambda: bool(low.up and high.up))
        for link in high.links._links.values():
            link.replaced = True  # no more beats of it, though its connection stays

        await until(lambda: bool(low.down))

        assert low.down[0] == (1, "it was silent for 0.4 s")
        await low.links.close()
        await high.links.close()

    run(test())
