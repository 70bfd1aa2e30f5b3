"""Input of a session from a descriptor."""

import asyncio
import contextlib
import threading
from concurrent.futures import CancelledError

from holdfast.cli.node_access.channel import DataChannel
from holdfast.cli.node_access.descriptors import own_reader
from holdfast.session_manager import Flag, PayloadType

STEP = 1 << 14
AFTER_END_S = 5.0
"""For the rest of the output after the end of the input: a session cannot be closed by halves."""


async def relayed(channel: DataChannel, *, source: int) -> str:
    """Send what ``source`` has until the session ends; return the reason of the end."""
    loop = asyncio.get_running_loop()
    ended = asyncio.Event()
    own = own_reader(source)

    def read() -> None:
        # The loop may be closed.
        with own as given, contextlib.suppress(OSError, RuntimeError, CancelledError):
            while data := given.read(STEP):
                asyncio.run_coroutine_threadsafe(channel.send(data), loop).result()
            loop.call_soon_threadsafe(ended.set)

    threading.Thread(target=read, name="relay", daemon=True).start()
    running = asyncio.create_task(channel.run())
    waiting = asyncio.create_task(ended.wait())
    await asyncio.wait((running, waiting), return_when=asyncio.FIRST_COMPLETED)
    waiting.cancel()
    if not running.done():
        await asyncio.wait((running,), timeout=AFTER_END_S)
    if not running.done():
        await channel.send(Flag.TERMINATE_SESSION.encode(), PayloadType.FLAG)
    return await running
