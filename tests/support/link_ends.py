"""A launcher's links without a launcher: what they tell is kept, and all are closed when the test ends."""

import asyncio
import gc
from collections.abc import Callable, Coroutine
from typing import Any

from holdfast_runtime.control import Deadlines
from holdfast_runtime.launcher.links import Handlers, Identity, LinkMessage, Links
from holdfast_runtime.overlay import Member

DEADLINES = Deadlines(beat=0.05, heartbeat=0.4)
CALM = Deadlines(beat=0.2, heartbeat=3.0)
"""For many launchers in one process."""
PATIENT = Deadlines(beat=0.05, heartbeat=25.0)
"""For tests that are not about silence: a busy machine keeps a process from its turn for longer than 0.4 s."""


opened: list["End"] = []
"""What the end of a test closes."""


class End:
    """One launcher's links, and what they have told."""

    def __init__(
        self,
        node: int,
        *,
        token: str = "secret",
        run_id: str = "run",
        deadlines: Deadlines = DEADLINES,
        size: int = 16,
    ) -> None:
        self.up: list[tuple[int, int]] = []
        """Node and incarnation."""
        self.down: list[tuple[int, str]] = []
        self.messages: list[tuple[int, LinkMessage]] = []
        self.taken: list[str] = []
        self.strangers: list[str] = []
        self.settled = False
        """Whether it has a place that it would lose by beginning anew."""
        self._handlers = Handlers(
            up=self._up,
            down=self._down,
            message=self._message,
            taken=self.taken.append,
            restart=lambda: not self.settled,
            stranger=self.strangers.append,
        )
        identity = Identity(node=node, run_id=run_id, token=token)
        self.links = Links(identity, host="127.0.0.1", deadlines=deadlines, size=size)

    async def open(
        self, *others: "End", port: int = 0, named: tuple[tuple[str, int], ...] = (), formed: bool = True
    ) -> "End":
        opened.append(self)
        known = tuple(("127.0.0.1", other.links.port) for other in others)
        await self.links.open(port=port, known=(*known, *named), handlers=self._handlers)
        if formed:  # the job has a view
            self.links.formed()
        return self

    def show(self, address: tuple[str, int]) -> None:
        """Have it call an address, again and again until a launcher is found there."""
        self.links._known = self.links._reach._known = (address,)

    def _up(self, member: Member) -> None:
        self.up.append((member.node, member.incarnation))

    def _down(self, node: int, why: str) -> None:
        self.down.append((node, why))

    def _message(self, node: int, message: LinkMessage) -> None:
        self.messages.append((node, message))


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(60.0):
        while not condition():
            await asyncio.sleep(0.005)


def run(test: Coroutine[Any, Any, None]) -> None:
    async def and_close() -> None:
        try:
            await asyncio.wait_for(test, 100.0)
        finally:
            await asyncio.gather(*(end.links.close() for end in opened))
            opened.clear()
            # Connections that were still being made are closed by tasks of their own, now that nobody answers.
            if tasks := asyncio.all_tasks() - {asyncio.current_task()}:
                await asyncio.wait(tasks, timeout=10.0)
            # On a busy machine some connections are still to be closed, or to be read by nobody.
            for transport in [each for each in gc.get_objects() if issubclass(type(each), asyncio.WriteTransport)]:
                transport.abort()
            await asyncio.sleep(0.05)

    gc.disable()  # else it may find such a connection first, and warns that nobody has closed it
    try:
        asyncio.run(and_close())
    finally:
        gc.enable()
