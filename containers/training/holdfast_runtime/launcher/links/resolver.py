"""Addresses of hosts, resolved in a thread per name: a lookup whose packets are lost takes seconds."""

import asyncio
import contextlib
import socket
import threading
from collections.abc import Callable
from functools import partial
from ipaddress import ip_address

PATIENCE_S = 0.3
"""How long an answer is waited for where an earlier one is known."""


def addresses_of(host: str) -> tuple[str, ...]:
    """All that it has, in the order in which they are to be tried. Raises OSError."""
    found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    return tuple(dict.fromkeys(str(address[0]) for *_, address in found))


def _is_address(host: str) -> bool:
    try:
        ip_address(host)
    except ValueError:
        return False
    return True


class Resolver:
    def __init__(self) -> None:
        self._asked: dict[str, asyncio.Future[tuple[str, ...]]] = {}
        self._found: dict[str, tuple[str, ...]] = {}

    async def addresses(self, host: str) -> tuple[str, ...]:
        """
        Those of a host, or those that it had when it was last asked for and nobody answers.

        Raises:
            OSError: there is no such name.
        """
        if _is_address(host):
            return (host,)
        asked = self._asked.get(host) or self._ask(host)
        try:
            return await asyncio.wait_for(asyncio.shield(asked), PATIENCE_S if host in self._found else None)
        except asyncio.TimeoutError:
            return self._found[host]

    def _ask(self, host: str) -> asyncio.Future[tuple[str, ...]]:
        loop = asyncio.get_running_loop()
        future: asyncio.Future[tuple[str, ...]] = loop.create_future()
        future.add_done_callback(lambda done: self._answered(host, done))
        self._asked[host] = future

        def look() -> None:
            tell: Callable[[], None]
            try:
                tell = partial(future.set_result, addresses_of(host))
            except OSError as error:
                tell = partial(future.set_exception, error)
            with contextlib.suppress(RuntimeError):  # the loop may have ended meanwhile
                loop.call_soon_threadsafe(tell)

        threading.Thread(target=look, name=f"lookup of {host}", daemon=True).start()
        return future

    def _answered(self, host: str, done: asyncio.Future[tuple[str, ...]]) -> None:
        self._asked.pop(host, None)
        if not done.cancelled() and done.exception() is None:
            self._found[host] = done.result()
