"""Outgoing connections of a launcher."""

import asyncio
import contextlib
import itertools
from collections.abc import Awaitable, Callable, Mapping

from holdfast_runtime.control import MessageError
from holdfast_runtime.launcher.links.link import Link
from holdfast_runtime.launcher.links.peers import Address
from holdfast_runtime.launcher.links.resolver import Resolver


class Calls:
    """
    Those of one launcher.

    Args:
        links: Connections, by node.
        limit: Longest line of who answers, in bytes.
    """

    def __init__(
        self,
        *,
        call: Callable[[Address], Awaitable[None]],
        links: Mapping[int, Link],
        limit: int,
    ) -> None:
        self.own: set[Address] = set()
        """Where this launcher itself is found."""
        self._call = call
        self._links = links
        self._limit = limit
        self._names = Resolver()
        self._numbers = itertools.count()
        self._answered: dict[Address, Address] = {}
        self._dialling: dict[Address, asyncio.Task[None]] = {}
        self._closed = False

    def next_number(self) -> int:
        return next(self._numbers)

    def answered(self, address: Address, *, at: Address) -> None:
        self._answered[address] = at

    def dial(self, address: Address) -> None:
        linked = {(link.peer.host, link.peer.port) for link in self._links.values()}
        known = self._answered.get(address, address) in linked
        if known or address in self.own or address in self._dialling or self._closed:
            return
        task = asyncio.get_running_loop().create_task(self._dial(address))
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
        self._closed = True

    @property
    def dialling(self) -> list[asyncio.Task[None]]:
        return [*self._dialling.values()]

    async def _dial(self, address: Address) -> None:
        with contextlib.suppress(OSError, asyncio.TimeoutError, MessageError, asyncio.IncompleteReadError):
            await self._call(address)
