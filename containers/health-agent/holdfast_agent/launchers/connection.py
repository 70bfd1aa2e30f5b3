"""Connection of one launcher, with limits and a verified peer."""

import socket
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from typing import Optional

from holdfast_agent.launchers.job_report import JobReport
from holdfast_agent.launchers.peer import Peer, PeerMismatchError
from holdfast_common import node_socket

LINES_PER_S = 20.0
MOST_LINES_AT_ONCE = 100.0
"""A launcher reports once a second, and whenever its processes change."""
MOST_OPEN = 16
"""Commands that have no last answer yet."""


class Connection:
    def __init__(self, line: socket.socket, *, peer: Peer, number: int, since_s: float) -> None:
        self.descriptor = line.fileno()
        self.peer = peer
        self.number = number
        self.since_s = since_s
        self.job: Optional[JobReport] = None
        """Last report; None before the first."""
        self._line = line
        self._pending = b""
        self._out = b""
        self._open: dict[str, str] = {}
        self._lines = MOST_LINES_AT_ONCE
        self._refilled_s = since_s

    def receive(self, *, now_s: float) -> "Iterator[node_socket.NodeMessage]":
        """Return messages. Raises NodeSocketError (unknown protocol, or over a limit) or OSError."""
        with suppress(BlockingIOError):
            data = self._line.recv(node_socket.LINE_BYTES)
            if not data:
                raise ConnectionResetError("connection closed by the launcher")
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
        """Store a report after verifying it; raises PeerMismatchError for processes or a job of others."""
        if not self.peer.lives:
            raise PeerMismatchError(f"process {self.peer.pid} has exited; another process uses its connection")
        known = self.job
        if known is None:
            self.peer.check_names(job=report.job, task=report.task)
        elif (known.job, known.task, known.run, known.node) != (report.job, report.task, report.run, report.node):
            raise PeerMismatchError(f"process {self.peer.pid} reported job {known.job} before, now {report.job}")
        here = self.peer.own(tuple(rank.pid for rank in report.ranks))
        ranks = tuple(replace(rank, pid=here[rank.pid]) for rank in report.ranks if rank.pid in here)
        self.job = JobReport(
            **{**vars(report), "ranks": ranks},
            connection=self.number,
            uid=self.peer.uid,
            pid=self.peer.pid,
            received_s=now_s,
        )

    def answered(self, answer: node_socket.Answer) -> None:
        if self._open.get(answer.id) != answer.command:
            raise PeerMismatchError(f"process {self.peer.pid} answered {answer.command} {answer.id}: never sent")
        if answer.outcome != "begun":
            del self._open[answer.id]

    def queue(self, command: node_socket.Command) -> bool:
        """Add a command to the next ``send``; False where too many are open."""
        if len(self._open) >= MOST_OPEN or command.id in self._open:
            return command.id in self._open
        self._open[command.id] = command.command
        self._out += node_socket.to_line(command)
        return True

    def send(self) -> bool:
        """Send without waiting; True if something is left. Raises OSError."""
        with suppress(BlockingIOError):
            while self._out:
                self._out = self._out[self._line.send(self._out) :]
        return bool(self._out)

    def close(self) -> None:
        self._line.close()
