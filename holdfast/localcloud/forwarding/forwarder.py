"""Byte forwarding from a listening socket to an address. Sockets come from the caller."""

import asyncio
import collections
import contextlib
import socket
import threading
from collections.abc import Callable
from functools import partial

from holdfast.localcloud.supervision import Worker

AWS_PORT = 5710
"""On the gateway of the nodes' network: the embedded AWS."""
CHUNK = 65536
MOST_OF_AN_ADDRESS = 64
"""Connections of one caller at a time: what it is passed on to serves all of them."""
PASS_S = 1.0
CONNECT_S = 10.0


class Forwarder:
    """Connects each caller with ``host:port``; one thread. ``stream`` makes the connecting socket."""

    def __init__(
        self, *, listener: socket.socket, host: str, port: int, stream: Callable[[], socket.socket] | None = None
    ) -> None:
        self._listener = listener
        self._target = (host, port)
        self._stream = stream
        self._stopping = threading.Event()
        self._ready = threading.Event()
        self._wake: Callable[[], object] = lambda: None
        self.worker = Worker(name="forward", work=lambda: asyncio.run(self._serve()), stopping=self._stopping)

    def start(self) -> None:
        self.worker.start()
        self._ready.wait(5.0)

    def stop(self) -> None:
        """Reject new callers, drop the present ones."""
        self._stopping.set()
        with contextlib.suppress(RuntimeError):  # the loop has ended meanwhile
            self._wake()
        self.worker.join(5.0)
        self._listener.close()

    async def _serve(self) -> None:
        callers: set[asyncio.Task[None]] = set()
        of_address: collections.Counter[str] = collections.Counter()

        async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            task = asyncio.current_task()
            assert task is not None
            address = str((writer.get_extra_info("peername") or [""])[0])
            callers.add(task)
            of_address[address] += 1
            try:
                if of_address[address] > MOST_OF_AN_ADDRESS:
                    writer.close()
                    return
                await self._connect(reader, writer)
            except asyncio.CancelledError:
                writer.close()  # asyncio would take it for a failure and report it
            finally:
                callers.discard(task)
                of_address[address] -= 1
                if not of_address[address]:
                    del of_address[address]

        stop = asyncio.Event()
        self._wake = partial(asyncio.get_running_loop().call_soon_threadsafe, stop.set)
        listener = self._listener.dup()  # the server closes its own, and may not be the last one
        listener.settimeout(0)
        server = await asyncio.start_server(accept, sock=listener)
        self._ready.set()
        while not self._stopping.is_set():
            self.worker.passed()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(stop.wait(), PASS_S)
        server.close()
        for task in callers:
            task.cancel()
        await asyncio.gather(*callers, return_exceptions=True)

    async def _connect(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            far_reader, far_writer = await self._reach()
        except OSError:
            writer.close()
            return
        pumps = [asyncio.create_task(_pump(reader, far_writer)), asyncio.create_task(_pump(far_reader, writer))]
        try:
            # An end of what one side says is handed on; one that broke off ends both, or the other would wait for it.
            with contextlib.suppress(OSError):
                await asyncio.gather(*pumps)
        finally:
            for pump in pumps:
                pump.cancel()
            for side in (writer, far_writer):
                side.close()
            for side in (writer, far_writer):
                with contextlib.suppress(OSError):
                    await side.wait_closed()

    async def _reach(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        if self._stream is None:
            return await asyncio.open_connection(*self._target)
        stream = self._stream()
        try:
            stream.setblocking(False)  # noqa: FBT003
            async with asyncio.timeout(CONNECT_S):
                await asyncio.get_running_loop().sock_connect(stream, self._target)
        except BaseException:
            stream.close()
            raise
        return await asyncio.open_connection(sock=stream)


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(CHUNK):
        writer.write(data)
        await writer.drain()
    writer.write_eof()
