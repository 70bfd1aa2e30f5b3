"""The caller's terminal as that of a session."""

import asyncio
import contextlib
import os
import signal
import sys
import termios
import tty
from collections.abc import Iterator

from holdfast.cli.node_access.channel import DataChannel
from holdfast.cli.node_access.relaying import relayed
from holdfast.session_manager import PayloadType, TerminalSize


async def on_caller_terminal(channel: DataChannel) -> str:
    """Connect keys, screen and size; return the reason of the end."""
    loop = asyncio.get_running_loop()
    sizes: set[asyncio.Task[None]] = set()

    def resize() -> None:
        with contextlib.suppress(OSError):
            columns, rows = os.get_terminal_size(sys.stdout.fileno())
            size = TerminalSize(columns=columns, rows=rows)
            task = loop.create_task(channel.send(size.encode(), PayloadType.SIZE))
            sizes.add(task)
            task.add_done_callback(sizes.discard)

    loop.add_signal_handler(signal.SIGWINCH, resize)
    resize()
    try:
        with _raw(sys.stdin.fileno()):
            return await relayed(channel, source=sys.stdin.fileno())
    finally:
        loop.remove_signal_handler(signal.SIGWINCH)
        for one in list(sizes):
            one.cancel()


@contextlib.contextmanager
def _raw(descriptor: int) -> Iterator[None]:
    """Hand on every key; does nothing for what is no terminal."""
    try:
        before = termios.tcgetattr(descriptor)
    except termios.error:
        yield
        return
    tty.setraw(descriptor, termios.TCSADRAIN)  # what was typed already is for the session
    try:
        yield
    finally:
        termios.tcsetattr(descriptor, termios.TCSADRAIN, before)
