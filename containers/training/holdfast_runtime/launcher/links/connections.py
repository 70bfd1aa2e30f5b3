"""
TCP connections to other launchers: a few in a large job, all in one of up to 9 launchers.

Launchers exchange the members that they know, so one that answers is enough to find all. Of two, the one of the
higher node makes the connection; the other only shows where it is, so that there are never two with a message lost in
one of them. Both sides prove that they know the run's token before anything else is read, and seal what follows.
"""

import asyncio
import contextlib
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass

from holdfast_runtime.control import Deadlines, MessageError, end_tasks, listen
from holdfast_runtime.launcher.links.calls import Calls
from holdfast_runtime.launcher.links.handshake import HANDSHAKE_BYTES, Handshake, Proofs
from holdfast_runtime.launcher.links.heartbeats import Heartbeats
from holdfast_runtime.launcher.links.known_launchers import Identity, KnownLaunchers
from holdfast_runtime.launcher.links.link import BEAT, Link
from holdfast_runtime.launcher.links.peers import Address
from holdfast_runtime.launcher.links.reach import Hooks, OverlayDriver
from holdfast_runtime.launcher.links.wire import (
    LINK,
    Beat,
    Disconnect,
    HeartbeatRequest,
    Hello,
    LinkMessage,
    LinkNeed,
)
from holdfast_runtime.overlay import Member, Packet

RETIRED_HEARTBEATS = 10
"""How long who was called leaves the end of a connection that another one has replaced to the caller."""
PARTING_S = 1.0
"""Longest wait for the others to have read the last message."""


def _nothing(_node: int) -> None:
    pass


@dataclass(frozen=True, kw_only=True)
class Handlers:
    """Callbacks; none may block."""

    up: Callable[[Member], None]
    down: Callable[[int, str], None]
    message: Callable[[int, LinkMessage], None]
    taken: Callable[[str], None]
    """Another launcher has this one's place."""
    restart: Callable[[], bool]
    """Another launcher had this one's place: forget all agreements, if nothing is lost by that. Return True if so."""
    stranger: Callable[[str], None]
    """A program without the run's token, or one that reports this launcher to have another; called once for each."""
    linked: Callable[[int], None] = _nothing
    """A connection to a launcher is up."""


class Links:
    """All links of this launcher."""

    def __init__(self, identity: Identity, *, host: str, deadlines: Deadlines, size: int = 1) -> None:
        self._others = KnownLaunchers(identity)
        self._host = host
        self._port = 0
        self._deadlines = deadlines
        self._handlers: Handlers
        self._links: dict[int, Link] = {}
        self._calls = Calls(call=self._call, links=self._links, limit=HANDSHAKE_BYTES)
        self._beats = Heartbeats(links=self._links, beside=lambda: self._reach.beside(), deadlines=deadlines)
        self._door = Handshake(
            proofs=Proofs(run_id=identity.run_id, token=identity.token),
            others=self._others,
            calls=self._calls,
            hello=self._hello,
            serve=self._serve,
            replace=self._replace,
            stranger=self._stranger,
            patience_s=self._beats.patience_s,
        )
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._size = size
        self._known: tuple[Address, ...] = ()
        self._reach: OverlayDriver
        """As handlers, from the opening on."""
        self._closing = False
        self._last: tuple[LinkMessage, bytes] = (Beat(), BEAT)

    @property
    def incarnation(self) -> int:
        return self._others.incarnation

    @property
    def identity(self) -> int:
        return self._others.identity

    @property
    def _me(self) -> Identity:
        return self._others.me

    @property
    def strangers(self) -> list[str]:
        return self._door.strangers

    @property
    def port(self) -> int:
        return self._port

    @property
    def up(self) -> frozenset[int]:
        return self._reach.up if self._port else frozenset()

    def address_of(self, node: int) -> str:
        address = self._reach.address_of(node)
        return address[0] if address is not None else self._host

    async def open(self, *, port: int, known: tuple[Address, ...], handlers: Handlers) -> None:
        """Listen, and look for the others. Raises OSError when the port cannot be had."""
        door = listen(port=port)
        self._port = door.getsockname()[1]
        self._calls.own.add((self._host, self._port))
        self._known = known
        self._handlers = handlers
        self._reach = self._make_reach()
        self._server = await asyncio.start_server(self._accept, sock=door, limit=HANDSHAKE_BYTES)
        self._tasks.add(asyncio.get_running_loop().create_task(self._beats.run()))

    def _make_reach(self) -> OverlayDriver:
        own = Member(self._me.node, self._me.uid, self.incarnation, self._host, self._port)
        hooks = Hooks(
            links=self._links,
            call=self._calls.dial,
            up=self._member_up,
            down=self._handlers.down,
            message=self._handlers.message,
            rival=self._replace,
            patience_s=self._beats.patience_s,
        )
        return OverlayDriver(own, known=self._known, size=self._size, deadlines=self._deadlines, hooks=hooks)

    def formed(self) -> None:
        self._beats.begin()

    def watch_also(self, nodes: frozenset[int]) -> None:
        self._beats.watch_also(nodes)

    def send(self, node: int, message: LinkMessage) -> None:
        link = self._links.get(node)
        if self._closing:
            return
        if link is not None:
            link.write(self._written(message))
        else:
            self._reach.send(node, message)

    def broadcast(self, message: LinkMessage) -> None:
        self.spread(self.up, message)

    def spread(self, nodes: Collection[int], message: LinkMessage) -> None:
        if self._closing or all(node in self._links for node in nodes):
            for node in [*nodes]:
                self.send(node, message)
        else:
            self._reach.spread(self._written(message), skip=self.up.difference(nodes))

    def _written(self, message: LinkMessage) -> bytes:
        if self._last[0] is not message:
            self._last = (message, LINK.encode(message))
        return self._last[1]

    async def close(self) -> None:
        self._closing = True
        self._calls.close()
        self._beats.close()
        if self._server is not None:
            self._server.close()
        links = [*self._links.values()]
        if self._port:  # it was opened
            self._reach.close(last=True)
        for link in links:
            link.write(LINK.encode(Disconnect(over=True)))
        for link in links:
            # Only the end of what is sent: a connection that is closed with something unread in it is reset, and the
            # other side loses the last message too.
            link.finish()
        with contextlib.suppress(asyncio.TimeoutError):
            await asyncio.wait_for(asyncio.gather(*(link.ended.wait() for link in links)), PARTING_S)
        await end_tasks([*self._tasks, *self._calls.dialling])

    async def _call(self, address: Address) -> None:
        try:
            calling = asyncio.ensure_future(self._calls.connected(address))
            # What it raises in the moment in which it is cancelled would be written into the log of the job.
            calling.add_done_callback(lambda done: done.cancelled() or done.exception())
            reader, writer = await asyncio.wait_for(calling, self._beats.patience_s())
        except (OSError, asyncio.TimeoutError):
            self._reach.failed(address)
            raise
        try:
            await self._door.call(address, reader, writer)
        finally:
            writer.close()

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        if task is not None:
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        try:
            await self._door.admit(reader, writer)
        except (OSError, asyncio.TimeoutError, asyncio.IncompleteReadError, MessageError, ValueError):
            pass
        except asyncio.CancelledError:
            pass  # asyncio logs a server's task that is cancelled as if it had failed
        finally:
            writer.close()

    def _replace(self, incarnation: int) -> None:
        if incarnation <= self.incarnation or self._closing:
            return
        if not self._handlers.restart():
            self._handlers.taken(f"another launcher has the place of node {self._me.node}")
            return
        self._others.restart(incarnation)
        links = [*self._links.values()]
        self._links.clear()
        for link in links:
            link.writer.transport.abort()
        self._reach.close(last=False)
        self._reach = self._make_reach()
        for link in links:
            self._calls.dial((link.peer.host, link.peer.port))

    def _stranger(self, text: str) -> None:
        self._handlers.stranger(text)

    def _hello(self) -> Hello:
        return self._others.hello(host=self._host, port=self._port)

    async def _serve(self, link: Link, reader: asyncio.StreamReader) -> None:
        if self._closing:
            return  # a wait that just ended does not see its cancellation, and nobody would answer the other side
        node = link.peer.node
        self._take(link)
        link.heard_s = time.monotonic()
        why = "its connection was closed"
        try:
            link.open()
            while (line := await link.sealed.read(reader)) is not None:
                link.hear(time.monotonic(), beat_s=self._deadlines.beat)
                if line != BEAT:
                    self._heard(link, LINK.decode(line))
        except OSError:
            pass
        except (MessageError, ValueError) as error:
            why = f"protocol error: {error}"
        finally:
            why = link.silent or why
            link.close()
            if self._links.get(node) is link:
                del self._links[node]
                if not self._closing:
                    self._beats.settle_soon()
                    self._reach.ended(link, why)

    def _heard(self, link: Link, message: LinkMessage) -> None:
        if isinstance(message, HeartbeatRequest):
            self._beats.heard(link, message)
        elif isinstance(message, Packet | LinkNeed | Disconnect):
            self._reach.heard(link, message)
        else:
            self._handlers.message(link.peer.node, message)

    def _retire(self, link: Link, *, by: Link) -> None:
        link.replaced = True
        waits = link.peer.uid == by.peer.uid and self._me.node < link.peer.node
        delay_s = self._deadlines.heartbeat * (RETIRED_HEARTBEATS if waits else 1)
        asyncio.get_running_loop().call_later(delay_s, link.writer.transport.abort)
        if not waits:
            link.finish()

    def _take(self, link: Link) -> None:
        """The newest link to a node counts; what is still on its way on an older one to the same launcher is read."""
        peer = link.peer
        before = self._links.get(peer.node)
        if before is not None and before.peer.uid == peer.uid and before.call > link.call:
            self._retire(link, by=before)
            return
        self._links.pop(peer.node, None)
        if before is not None:
            self._retire(before, by=link)
        self._links[peer.node] = link
        self._beats.settle_soon()
        same = before is not None and before.peer.uid == peer.uid
        if not same:
            self._others.note(peer.node, peer.uid, peer.incarnation)
        self._reach.linked(link)
        if not same:  # after it has been said that the launcher is up
            asyncio.get_running_loop().call_soon(self._handlers.linked, peer.node)

    def _member_up(self, member: Member) -> None:
        self._others.note(member.node, member.uid, member.incarnation)
        self._handlers.up(member)
