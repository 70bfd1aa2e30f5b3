"""Which addresses a launcher calls, and until when. What is said on a connection is left to its links."""

import asyncio
import contextlib
import itertools
from collections.abc import Awaitable, Callable, Collection

from holdfast_runtime.control import MessageError
from holdfast_runtime.launcher.links.names import Names
from holdfast_runtime.launcher.links.peers import Address

RETRY_S = 0.2
SLOW_RETRY_S = 1.0
QUICK_TRIES = 50


class Calls:
    """
    Those of one launcher.

    Args:
        call: Make a connection and serve it to its end; whether the other side calls from now on.
        linked: Where the launchers are that there is a connection to.
        once: Whether an address is called once only, as somebody else knows when to call again.
        limit: Longest line of who answers, in bytes.
    """

    def __init__(
        self,
        *,
        call: Callable[[Address], Awaitable[bool]],
        linked: Callable[[], Collection[Address]],
        once: Callable[[], bool],
        limit: int,
    ) -> None:
        self.own: set[Address] = set()
        """Where this launcher itself is found."""
        self._call = call
        self._linked = linked
        self._once = once
        self._limit = limit
        self._names = Names()
        self._numbers = itertools.count()
        self._answered: dict[Address, Address] = {}
        self._dialling: dict[Address, asyncio.Task[None]] = {}
        self._closed = False

    def next_number(self) -> int:
        """Of a call."""
        return next(self._numbers)

    def answered(self, address: Address, *, at: Address) -> None:
        """A launcher answers there that says that it is at another address, as one that is called by its name."""
        self._answered[address] = at

    def dial(self, address: Address) -> None:
        """Call until there is a connection, unless it is being called."""
        if address in self.own or address in self._dialling or self._closed:
            return
        task = asyncio.get_running_loop().create_task(self._keep_dialling(address))
        self._dialling[address] = task
        task.add_done_callback(lambda _: self._dialling.pop(address, None))

    async def connected(self, address: Address) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """A connection to one of its host's addresses. Raises OSError."""
        host, port = address
        *others, last = await self._names.addresses(host)
        for found in others:
            with contextlib.suppress(OSError):
                return await asyncio.open_connection(found, port, limit=self._limit)
        return await asyncio.open_connection(last, port, limit=self._limit)

    def close(self) -> None:
        """Call nobody any more."""
        self._closed = True

    @property
    def dialling(self) -> list[asyncio.Task[None]]:
        """What makes calls now."""
        return [*self._dialling.values()]

    async def _keep_dialling(self, address: Address) -> None:
        """Until this address is that of somebody in reach, of somebody who will call, or of this launcher alone."""
        tries = 0
        while address not in self.own and not self._closed:  # a wait that just ended does not see its cancellation
            if self._answered.get(address, address) in self._linked():
                return
            with contextlib.suppress(OSError, asyncio.TimeoutError, MessageError, asyncio.IncompleteReadError):
                if await self._call(address):
                    return
            if self._once():
                return
            tries += 1
            await asyncio.sleep(RETRY_S if tries < QUICK_TRIES else SLOW_RETRY_S)
