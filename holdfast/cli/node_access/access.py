import subprocess
from collections.abc import Mapping, Sequence
from typing import Protocol


class NodeAccessError(Exception):
    """The node does not answer."""


class NodeAccess(Protocol):
    """``node`` is an instance id, a host name or an address. Each method raises CommandError for an unknown one."""

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
        """
        Run a program without a terminal, as root or ``user``, with ``text`` as its input.

        Its environment is PATH, the account's variables and ``env``. ``env`` and ``text`` are no place for secrets: on
        AWS CloudTrail records them.

        Raises:
            NodeAccessError: the node does not answer, or has no such user.
            subprocess.TimeoutExpired: the program did not end in time.
        """

    def attach(self, *, node: str, argv: Sequence[str], user: str) -> int:
        """Run a program on the caller's terminal, in a login environment; return its exit code."""

    def relay(self, *, node: str, port: int, source: int, sink: int) -> None:
        """
        Relay between descriptors and a port of the node, until the node's end closes.

        Raises:
            NodeAccessError: the node does not answer, or nothing listens.
        """
