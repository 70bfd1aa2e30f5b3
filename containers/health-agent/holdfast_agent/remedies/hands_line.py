"""The agent's connection to the executor: never waits, and restarts it when it exits or hangs."""

import contextlib
import json
import signal
import socket
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Optional

from holdfast_agent.remedies.words import MOST_BYTES, Answer, Request, WordsError, parse_answer, request_line

ANSWER_S = 45.0
"""Three commands of Slurm's, each with 10 s, and a reset."""
IDLE_S = 120.0
_PROGRAM = (
    "import json, sys; sys.path[:0] = json.loads(sys.argv.pop(1)); "
    "from holdfast_agent.remedies.__main__ import main; sys.exit(main())"
)


class HandsLine:
    """Starts the executor on demand, with the agent's file and KEY=VALUE pairs; ``answer_s`` is its timeout."""

    def __init__(
        self,
        *,
        config: Path = Path("/etc/holdfast/agent.json"),
        overrides: Sequence[str] = (),
        answer_s: float = ANSWER_S,
    ) -> None:
        pairs = [part for pair in overrides for part in ("--set", pair)]
        self._argv, self._answer_s = [*_itself(), "--config", str(config), *pairs], answer_s
        self._process: Optional[subprocess.Popen[bytes]] = None
        self._line: Optional[socket.socket] = None
        self._open: Optional[Request] = None
        self._asked_s = self._used_s = 0.0

    def send(self, request: Request, *, boot_s: float) -> None:
        """Send one request at a time; ``receive`` always returns an answer to it later."""
        self._open, self._asked_s, self._used_s = request, boot_s, boot_s
        if not self._is_started():
            return
        assert self._line is not None
        with contextlib.suppress(OSError):
            self._line.send(request_line(request))

    def receive(self, *, boot_s: float) -> "tuple[Answer, ...]":
        """Return the answer, if any; an executor that does not respond is killed, which is the answer."""
        if self._open is None:
            if self._process is not None and boot_s - self._used_s > IDLE_S:
                self.close()
            return ()
        answer = self._received()
        if answer is None and boot_s - self._asked_s <= self._answer_s and self._lives():
            return ()
        if answer is None:
            hung = self._lives()
            why = f"executor: no response within {self._answer_s:g} s" if hung else "executor: exited or cannot start"
            answer = Answer(number=self._open.number, deed=self._open.deed, outcome="failed", why=why)
            self.close()
        self._open = None
        return (answer,)

    def close(self) -> None:
        """Kill the executor without waiting."""
        if self._line is not None:
            self._line.close()
            self._line = None
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(signal.SIGKILL)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(0.2)

    def _lives(self) -> bool:
        return self._line is not None and self._process is not None and self._process.poll() is None

    def _is_started(self) -> bool:
        if self._lives():
            return True
        if self._process is not None and self._process.poll() is None:
            return False  # killed, and not gone yet: never a second beside it
        self.close()
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            ours.setblocking(False)  # noqa: FBT003  the library's own signature
            try:
                self._process = subprocess.Popen(
                    self._argv, stdin=theirs.fileno(), stdout=subprocess.DEVNULL, start_new_session=True
                )
            except OSError:
                ours.close()
                return False
        self._line = ours
        return True

    def _received(self) -> Optional[Answer]:
        if self._line is None or self._open is None:
            return None
        while True:
            try:
                data = self._line.recv(MOST_BYTES)
            except BlockingIOError:
                return None
            except OSError:
                data = b""
            if not data:
                self.close()
                return None
            with contextlib.suppress(WordsError):
                answer = parse_answer(data)
                if answer.number in (self._open.number, -1):
                    return Answer(
                        number=self._open.number,
                        deed=self._open.deed,
                        outcome=answer.outcome,
                        why=answer.why,
                        view=answer.view,
                    )


def _itself() -> "list[str]":
    """Command of the executor: an installed agent runs isolated, so it passes the paths of its packages."""
    return [sys.executable, "-IS", "-c", _PROGRAM, json.dumps([entry for entry in sys.path if entry])]
