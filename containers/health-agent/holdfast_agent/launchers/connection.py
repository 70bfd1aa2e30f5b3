"""One launcher's connection: its lines within bounds, and who is behind it."""

import socket
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from typing import Optional

from holdfast_agent.launchers.job_report import JobReport
from holdfast_agent.launchers.peer import LieError, Peer
from holdfast_common import node_socket

LINES_PER_S = 20.0
MOST_LINES_AT_ONCE = 100.0
"""A launcher says something once a second, and whenever its processes change."""
MOST_OPEN = 16
"""Commands that have no last answer yet."""


class Connection:
    """
    From the moment that somebody connected.

    Args:
        line: Never waits.
        peer: By the kernel.
        number: Tells it from all others.
        since_s: When it connected.
    """

    def __init__(self, line: socket.socket, *, peer: Peer, number: int, since_s: float) -> None:
        self.descriptor = line.fileno()
        self.peer = peer
        self.number = number
        self.since_s = since_s
        self.job: Optional[JobReport] = None
        """What it said last; None while it has said nothing."""
        self._line = line
        self._pending = b""
        self._out = b""
        self._open: dict[str, str] = {}
        self._lines = MOST_LINES_AT_ONCE
        self._refilled_s = since_s

    def receive(self, *, now_s: float) -> "Iterator[node_socket.NodeMessage]":
        """
        The messages that have come.

        Raises:
            NodeSocketError: it speaks another language, or too much.
            OSError: it is gone.
        """
        with suppress(BlockingIOError):
            data = self._line.recv(node_socket.LINE_BYTES)
            if not data:
                raise ConnectionResetError("it has hung up")
            self._pending += data
        *lines, self._pending = self._pending.split(b"\n")
        if len(self._pending) > node_socket.LINE_BYTES:
            raise node_socket.NodeSocketError(f"a line of more than {node_socket.LINE_BYTES} bytes")
        self._lines = min(MOST_LINES_AT_ONCE, self._lines + (now_s - self._refilled_s) * LINES_PER_S)
        self._refilled_s = now_s
        for line in lines:
            self._lines -= 1
            if self._lines < 0:
                raise node_socket.NodeSocketError(f"more than {LINES_PER_S:g} lines a second")
            yield node_socket.from_line(line)

    def attest(self, report: node_socket.LauncherReport, *, now_s: float) -> None:
        """
        Take what it says of itself, as far as it is so.

        Raises:
            LieError: it speaks of processes or of a job that are not its own.
        """
        if not self.peer.lives:
            raise LieError(f"process {self.peer.pid} has ended, and another one speaks in its place")
        known = self.job
        if known is None:
            self.peer.check_names(job=report.job, task=report.task)
        elif (known.job, known.task, known.run, known.node) != (report.job, report.task, report.run, report.node):
            raise LieError(f"process {self.peer.pid} said that it is of job {known.job}, and now of {report.job}")
        here = self.peer.own(tuple(rank.pid for rank in report.ranks))
        ranks = tuple(replace(rank, pid=here[rank.pid]) for rank in report.ranks if rank.pid in here)
        self.job = JobReport(
            **{**vars(report), "ranks": ranks},
            connection=self.number,
            uid=self.peer.uid,
            pid=self.peer.pid,
            heard_s=now_s,
        )

    def answered(self, answer: node_socket.Answer) -> None:
        """Raises LieError for an answer to what nobody has asked for."""
        if self._open.get(answer.id) != answer.command:
            raise LieError(f"process {self.peer.pid} answers {answer.command} {answer.id}, which it was not asked for")
        if answer.outcome != "begun":
            del self._open[answer.id]

    def queue(self, command: node_socket.Command) -> bool:
        """Send a command with the next ``send``; False where too many are open."""
        if len(self._open) >= MOST_OPEN or command.id in self._open:
            return command.id in self._open
        self._open[command.id] = command.command
        self._out += node_socket.to_line(command)
        return True

    def send(self) -> bool:
        """Send what can be sent; whether something is left. Raises OSError."""
        with suppress(BlockingIOError):
            while self._out:
                self._out = self._out[self._line.send(self._out) :]
        return bool(self._out)

    def close(self) -> None:
        """Nothing more is said."""
        self._line.close()
