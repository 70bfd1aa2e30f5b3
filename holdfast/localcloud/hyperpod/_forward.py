"""
The way from the nodes to the embedded AWS, which listens on the machine's loopback interface only.

Bytes are passed on as they are; where the listening socket comes from is the fleet's business.
"""

import asyncio
import contextlib
import socket
import threading

CHUNK = 65536


class Forwarder:
    """Accepts on one socket and connects each caller with ``host:port``; one thread."""

    def __init__(self, *, listener: socket.socket, host: str, port: int) -> None:
        self._listener = listener
        self._target = (host, port)
        self._loop = asyncio.new_event_loop()
        self._stop = asyncio.Event()
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._run, name="forward", daemon=True)

    def start(self) -> None:
        self._thread.start()
        self._ready.wait(5.0)

    def stop(self) -> None:
        """Refuse new callers, drop the present ones."""
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(5.0)

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_until_complete(self._serve())
        finally:
            self._loop.close()

    async def _serve(self) -> None:
        callers: set[asyncio.Task[None]] = set()

        async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            task = asyncio.current_task()
            assert task is not None
            callers.add(task)
            try:
                await self._connect(reader, writer)
            finally:
                callers.discard(task)

        self._listener.settimeout(0)
        server = await asyncio.start_server(accept, sock=self._listener)
        self._ready.set()
        await self._stop.wait()
        server.close()
        for task in callers:
            task.cancel()
        await asyncio.gather(*callers, return_exceptions=True)

    async def _connect(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            far_reader, far_writer = await asyncio.open_connection(*self._target)
        except OSError:
            writer.close()
            return
        pumps = [asyncio.create_task(_pump(reader, far_writer)), asyncio.create_task(_pump(far_reader, writer))]
        try:
            await asyncio.gather(*pumps)
        finally:
            for pump in pumps:
                pump.cancel()
            for side in (writer, far_writer):
                side.close()
                with contextlib.suppress(OSError):
                    await side.wait_closed()


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while data := await reader.read(CHUNK):
            writer.write(data)
            await writer.drain()
        writer.write_eof()
