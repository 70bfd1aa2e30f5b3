"""
Launcher's end of the node socket: reports to the health agent, and receives its requests.

Only root and the launcher's own user are accepted as listeners, by the kernel's credentials.
"""

import asyncio
import contextlib
import os
import socket
from collections.abc import Callable
from pathlib import Path

from holdfast_common import node_socket
from holdfast_runtime.launcher.asking import peer_uid
from holdfast_runtime.launcher.generation import Journal

EVERY_S = 1.0
FIRST_RETRY_S = 1.0
LAST_RETRY_S = 15.0
LAST_WORD_S = 0.5
UNREAD_BYTES = 2 * node_socket.LINE_BYTES
"""An agent that reads no more gets no more, until it does."""
SLOWEST = 2.0


class AgentLink:
    """
    One launcher's.

    Args:
        trusted: Users who are obeyed. Default: root and that of this process.
    """

    def __init__(
        self,
        *,
        path: Path,
        report: Callable[[], node_socket.LauncherReport],
        command: Callable[[node_socket.Command, Callable[[node_socket.Answer], None]], None],
        journal: Journal,
        trusted: tuple[int, ...] | None = None,
    ) -> None:
        self._path = path
        self._report = report
        self._command = command
        self._journal = journal
        self._trusted = (0, os.getuid()) if trusted is None else trusted
        self._writer: asyncio.StreamWriter | None = None
        self._changed = asyncio.Event()
        self._reported = ""

    def changed(self) -> None:
        self._changed.set()

    async def run(self) -> None:
        retry_s = FIRST_RETRY_S
        while True:
            if self._path.exists():
                with contextlib.suppress(OSError, asyncio.TimeoutError):
                    if await self._connected():
                        retry_s = FIRST_RETRY_S
            await asyncio.sleep(retry_s)
            retry_s = min(SLOWEST * retry_s, LAST_RETRY_S)

    async def close(self) -> None:
        writer, self._writer = self._writer, None
        if writer is not None:
            with contextlib.suppress(OSError, asyncio.TimeoutError):
                await asyncio.wait_for(writer.drain(), LAST_WORD_S)
            writer.close()

    async def _connected(self) -> bool:
        opening = asyncio.open_unix_connection(str(self._path), limit=node_socket.LINE_BYTES)
        reader, writer = await asyncio.wait_for(opening, EVERY_S)
        if not self._is_trusted(writer):
            writer.close()
            return False
        self._writer = writer
        writer.transport.set_write_buffer_limits(high=0)
        sending = asyncio.get_running_loop().create_task(self._tell(writer))
        try:
            while line := await reader.readline():
                message = node_socket.from_line(line)
                if isinstance(message, node_socket.Command):
                    self._command(message, lambda answer: self._answer(answer, writer))
        except (node_socket.NodeSocketError, ValueError) as error:
            self._say(f"health agent at {self._path}: protocol error: {error}")
        finally:
            sending.cancel()
            if self._writer is writer:
                self._writer = None
                writer.close()
        return True

    async def _tell(self, writer: asyncio.StreamWriter) -> None:
        while not writer.is_closing():
            self._changed.clear()
            self._send(self._report(), writer)
            with contextlib.suppress(asyncio.TimeoutError):
                await asyncio.wait_for(self._changed.wait(), EVERY_S)
            await asyncio.sleep(EVERY_S / 20)  # what changes together is told once

    def _answer(self, answer: node_socket.Answer, writer: asyncio.StreamWriter) -> None:
        if writer is self._writer:
            self._send(answer, writer)

    def _send(self, message: node_socket.NodeMessage, writer: asyncio.StreamWriter) -> None:
        if writer.transport.get_write_buffer_size() > UNREAD_BYTES or writer.is_closing():
            return
        try:
            writer.write(node_socket.to_line(message))
        except node_socket.NodeSocketError as error:
            self._say(f"health agent: report not sent: {error}")

    def _is_trusted(self, writer: asyncio.StreamWriter) -> bool:
        line: socket.socket = writer.get_extra_info("socket")
        uid = peer_uid(line)
        if uid not in self._trusted:
            self._say(
                f"health agent at {self._path}: ignored: it runs as user {uid}; allowed: root, or the owner of this job"
            )
        return uid in self._trusted

    def _say(self, text: str) -> None:
        if text != self._reported:
            self._reported = text
            self._journal.say(text)
