"""Nodes of this machine: their namespaces are entered."""

import contextlib
import os
import socket
import subprocess
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, BinaryIO

from holdfast.cli.node_access.access import NodeAccessError
from holdfast.cli.node_access.descriptors import own_reader, write_all
from holdfast.cli.terminal import CommandError, sudo_command

if TYPE_CHECKING:
    from holdfast.localcloud.nodes import Node

STEP = 1 << 16


class NamespaceNodeAccess:
    def __init__(self, find: "Callable[[str], Node]") -> None:
        self._find = find

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
        from holdfast.localcloud.nodes import NodeError

        try:
            return self._find(node).run(list(argv), timeout_s=timeout_s, user=user, input=text, env=env)
        except (NodeError, OSError) as error:
            raise NodeAccessError(str(error)) from None

    def attach(self, *, node: str, argv: Sequence[str], user: str) -> int:
        return self._running(node).exec_tty(argv, user=user)

    def relay(self, *, node: str, port: int, source: int, sink: int) -> None:
        try:
            connection = self._running(node).connect(port)
        except OSError as error:
            raise NodeAccessError(f"port {port}: {error.strerror or error}") from None
        with connection:
            threading.Thread(target=_send, args=(own_reader(source), connection), name="relay", daemon=True).start()
            while data := connection.recv(STEP):
                write_all(sink, data)

    def _running(self, name: str) -> "Node":
        if os.geteuid() != 0:
            raise CommandError(f"entering a node's namespaces requires root; run: {sudo_command()}")
        node = self._find(name)
        if not node.alive():
            raise CommandError(f"node {name} is not running; see: holdfast status")
        return node


def _send(source: BinaryIO, connection: socket.socket) -> None:
    with source as given, contextlib.suppress(OSError):
        while data := given.read(STEP):
            connection.sendall(data)
        connection.shutdown(socket.SHUT_WR)
