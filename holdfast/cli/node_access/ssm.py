"""Nodes of a cluster on AWS: sessions of Systems Manager."""

import asyncio
import contextlib
import functools
import os
import secrets
import subprocess
import sys
from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import Any

from holdfast.cli.node_access.access import NodeAccessError
from holdfast.cli.node_access.api import SessionApi
from holdfast.cli.node_access.channel import ChannelError, DataChannel
from holdfast.cli.node_access.command_lines import (
    OutputError,
    at_login,
    exit_code_of,
    framed,
    on_terminal,
    parse_framed,
)
from holdfast.cli.node_access.descriptors import write_all
from holdfast.cli.node_access.relaying import relayed
from holdfast.cli.node_access.terminals import on_caller_terminal
from holdfast.session_manager import INTERACTIVE_COMMAND, NON_INTERACTIVE_COMMAND, SSH

MOST_OUTPUT = 256 << 20
SHELL = ["/bin/bash", "-l"]
"""Program of ``holdfast ssh`` without a command."""


class SsmNodeAccess:
    """``target_of`` returns the session target of a node; it raises CommandError for an unknown one."""

    def __init__(self, api: SessionApi, *, target_of: Callable[[str], str]) -> None:
        self._api = api
        self._target_of = target_of

    def run(
        self,
        *,
        node: str,
        argv: Sequence[str],
        user: str | None = None,
        text: str | None = None,
        env: Mapping[str, str] | None = None,
        timeout_s: float = 20.0,
    ) -> "subprocess.CompletedProcess[str]":
        done = self._command(node, argv, user=user, text=text, env=env, timeout_s=timeout_s)
        out, err = (one.decode(errors="replace") for one in (done.stdout, done.stderr))
        return subprocess.CompletedProcess(done.args, done.returncode, out, err)

    def attach(self, *, node: str, argv: Sequence[str], user: str) -> int:
        if not all(one is not None and one.isatty() for one in (sys.stdin, sys.stdout)):
            return self._attach_streams(node, argv, user=user)
        mark = secrets.token_hex(8)
        terminal = {name: os.environ[name] for name in ("TERM",) if name in os.environ}
        line = on_terminal(argv, user=user, mark=mark, env=terminal)
        held = bytearray()
        code: list[int] = []

        def show(data: bytes) -> None:
            held.extend(data)
            shown, found = exit_code_of(bytes(held), mark=mark)
            code.extend([] if found is None else [found])
            # The beginning of a mark may be the end of what has come.
            at = len(shown) if found is not None else _before_mark(shown)
            held[:] = shown[at:]
            sys.stdout.buffer.write(shown[:at])
            sys.stdout.buffer.flush()

        reason = self._converse(node, INTERACTIVE_COMMAND, {"command": [line]}, on_output=show, talk=on_caller_terminal)
        if not code:
            raise NodeAccessError(reason or "the session ended before its program")
        return code[0]

    def _attach_streams(self, node: str, argv: Sequence[str], *, user: str) -> int:
        """Run a program without a terminal. A session has no input, so only a shell gets the caller's."""
        text = sys.stdin.read() if list(argv) == SHELL and sys.stdin is not None else None
        done = self._command(node, at_login(argv), user=user, text=text, env=None, timeout_s=None)
        for stream, data in ((sys.stdout, done.stdout), (sys.stderr, done.stderr)):
            stream.buffer.write(data)
            stream.flush()
        return done.returncode

    def relay(self, *, node: str, port: int, source: int, sink: int) -> None:
        async def talk(channel: DataChannel) -> str:
            return await relayed(channel, source=source)

        write = functools.partial(write_all, sink)
        reason = self._converse(node, SSH, {"portNumber": [str(port)]}, on_output=write, talk=talk)
        if reason:
            raise NodeAccessError(reason)

    def _command(
        self,
        node: str,
        argv: Sequence[str],
        *,
        user: str | None,
        text: str | None,
        env: Mapping[str, str] | None,
        timeout_s: float | None,
    ) -> "subprocess.CompletedProcess[bytes]":
        try:
            line = framed(argv, user=user, text=text, env=env)
        except ValueError as error:
            raise NodeAccessError(str(error)) from None
        output = bytearray()

        def keep(data: bytes) -> None:
            output.extend(data)
            if len(output) > MOST_OUTPUT:
                raise ChannelError(f"{argv[0]} printed more than {MOST_OUTPUT >> 20} MiB")

        async def talk(channel: DataChannel) -> str:
            async with asyncio.timeout(timeout_s):
                return await channel.run()

        try:
            reason = self._converse(node, NON_INTERACTIVE_COMMAND, {"command": [line]}, on_output=keep, talk=talk)
        except TimeoutError:
            raise subprocess.TimeoutExpired(list(argv), timeout_s or 0.0) from None
        try:
            return parse_framed(argv, bytes(output))
        except OutputError as error:
            raise NodeAccessError(reason or str(error)) from None

    def _converse(
        self,
        node: str,
        document: str,
        parameters: dict[str, list[str]],
        *,
        on_output: Callable[[bytes], None],
        talk: Callable[[DataChannel], Coroutine[Any, Any, str]],
    ) -> str:
        started = self._api.start(target=self._target_of(node), document=document, parameters=parameters)

        async def whole() -> str:
            return await talk(DataChannel(self._api, started, on_output=on_output))

        try:
            return asyncio.run(whole())
        except BaseException as error:
            with contextlib.suppress(Exception):  # the first error is the one to report
                self._api.terminate(started.session_id)
            if isinstance(error, ChannelError):
                raise NodeAccessError(str(error)) from None
            raise


def _before_mark(output: bytes) -> int:
    at = output.rfind(b"\x1e")
    return at if at >= 0 and len(output) - at < 32 else len(output)
