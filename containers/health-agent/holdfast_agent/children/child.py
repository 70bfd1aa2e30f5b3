"""
Child process that answers questions over a socket pair.

It is forked, so it shares most pages with the agent, and lives on between questions. If it does not answer, no second
child is started: the same file system or driver would block that one too. It is killed after a while; a late answer
is accepted.
"""

import gc
import json
import os
import signal
import socket
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Optional

from holdfast_agent.children.waiting import Patience, started_at

LONGEST_MESSAGE = 1 << 16
AGAIN_AFTER_S = 5.0
"""Minimum time between starts."""

Phase = Callable[[str], None]
"""Called in the child before each step, so that the agent can name where it hangs."""
Serve = Callable[[Any, Phase], Any]


@dataclass(frozen=True)
class Answer:
    value: Any
    error: str = ""


class Child:
    """
    Args:
        serve: Called in the child with each question; returns JSON.
        kill_after_s: Kill a child that has not answered for so long.
    """

    def __init__(self, *, serve: Serve, kill_after_s: float) -> None:
        self._serve = serve
        self._kill_after_s = kill_after_s
        self._patience = Patience()
        self._socket: Optional[socket.socket] = None
        self._pid = 0
        self._started = 0
        self._killed = False
        self._not_before_s = 0.0
        self.waiting = False
        """A question is open."""
        self.phase = ""
        self.deaths = 0

    @property
    def pid(self) -> int:
        return self._pid

    @property
    def waited_s(self) -> float:
        """Seconds since the question was sent."""
        return self._patience.waited_s if self.waiting else 0.0

    def descriptors(self) -> "tuple[int, ...]":
        return (self._socket.fileno(),) if self._socket is not None else ()

    def ask(self, question: Any, boot_s: float) -> bool:
        """Send a question; False if one is open or the child has just died."""
        if self.waiting or self._alive_without_socket() or (self._socket is None and boot_s < self._not_before_s):
            return False
        if self._socket is None:
            self._start()
        assert self._socket is not None
        try:
            self._socket.send(json.dumps(question).encode())
        except OSError:
            self._lost(boot_s)
            return False
        self.waiting, self.phase = True, ""
        self._patience.begin(boot_s)
        return True

    def poll(self, boot_s: float) -> Optional[Answer]:
        if not self.waiting:
            return None
        answer = self._read(boot_s)  # before time is counted: it may have come while nobody looked
        if answer is None and self.waiting:
            waited_s = self._patience.turn(boot_s)
            if waited_s > self._kill_after_s and self._pid and not self._killed:
                self._killed = True
                _kill(self._pid)
            if self._socket is None and not self._alive_without_socket():
                self.waiting = False
        return answer

    def remember(self) -> "list[int]":
        return [self._pid, self._started] if self.waiting and self._pid else []

    def adopt(self, memory: "list[int]", boot_s: float) -> None:
        """Take over a stuck child of an earlier agent: while it exists, no other is started."""
        if len(memory) == 2 and started_at(memory[0]) == memory[1]:
            self._pid, self._started = memory
            self.waiting, self._killed = True, True
            self._patience.begin(boot_s)
            _kill(self._pid)

    def close(self) -> None:
        """Release: an idle child exits by itself, a stuck one is killed."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None
        if self._pid:
            _kill(self._pid)
            _reap(self._pid, hang=not self.waiting)
            self._pid = 0
        self.waiting = False

    def _start(self) -> None:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        gc.freeze()  # its collector would otherwise touch, and so copy, every page
        pid = os.fork()
        if pid == 0:
            _serve_and_exit(theirs, self._serve)
        gc.unfreeze()
        theirs.close()
        ours.setblocking(False)  # noqa: FBT003
        self._socket, self._pid, self._killed = ours, pid, False
        self._started = started_at(pid) or 0

    def _read(self, boot_s: float) -> Optional[Answer]:
        while self._socket is not None:
            try:
                message = self._socket.recv(LONGEST_MESSAGE)
            except BlockingIOError:
                return None
            except OSError:
                message = b""
            if not message:
                return self._lost(boot_s)
            kind, value = json.loads(message)
            if kind == "phase":
                self.phase = value
                continue
            self.waiting = False
            return Answer(value=value) if kind == "answer" else Answer(value=None, error=str(value))
        return None

    def _lost(self, boot_s: float) -> Optional[Answer]:
        if self._socket is not None:
            self._socket.close()
        self._socket, self._not_before_s = None, boot_s + AGAIN_AFTER_S
        self.deaths += 1
        if self._alive_without_socket():
            return None
        self.waiting = False
        return Answer(value=None, error="killed" if self._killed else "its process died")

    def _alive_without_socket(self) -> bool:
        if self._socket is not None or not self._pid:
            return False
        _reap(self._pid, hang=False)
        if started_at(self._pid) == self._started:
            return True
        self._pid = 0
        return False


def _serve_and_exit(theirs: socket.socket, serve: Serve) -> None:
    code = 1
    try:
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGCHLD):
            signal.signal(number, signal.SIG_DFL)
        signal.set_wakeup_fd(-1)
        null = os.open(os.devnull, os.O_RDWR)
        for standard in (0, 1, 2):  # whoever reads the agent's output must not wait for a child that cannot end
            os.dup2(null, standard)
        kept = theirs.fileno()
        os.closerange(3, kept)
        os.closerange(kept + 1, 1 << 16)
        while question := theirs.recv(LONGEST_MESSAGE):
            _answer(theirs, serve, json.loads(question))
        code = 0
    finally:
        os._exit(code)  # nothing returns into the agent's own code


def _answer(theirs: socket.socket, serve: Serve, question: Any) -> None:
    def phase(name: str) -> None:
        theirs.send(json.dumps(["phase", name]).encode())

    try:
        message = ["answer", serve(question, phase)]
    except Exception as problem:  # noqa: BLE001 - whatever it is, it is the answer
        message = ["error", f"{type(problem).__name__}: {problem}"]
    theirs.send(json.dumps(message).encode())


def _kill(pid: int) -> None:
    with suppress(OSError):
        os.kill(pid, signal.SIGKILL)


def _reap(pid: int, *, hang: bool) -> None:
    with suppress(OSError):
        os.waitpid(pid, 0 if hang else os.WNOHANG)
