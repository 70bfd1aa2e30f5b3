"""External program with a deadline and bounded output."""

import os
import signal
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Optional

from holdfast_agent.children.waiting import Patience

MOST_OUTPUT = 1 << 16


@dataclass(frozen=True)
class Ended:
    """
    Args:
        code: Exit code; negative: signal; None: not started.
        output: Standard output, at most 64 KiB.
        problem: Not started, or past the deadline.
    """

    code: Optional[int]
    output: str
    problem: str = ""


class Program:
    """Runs one program at a time. Past its deadline its session is killed, and not waited for."""

    def __init__(self, *, deadline_s: float) -> None:
        self.deadline_s = deadline_s
        self._patience = Patience()
        self._pid = 0
        self._pipe = -1
        self._output = b""
        self._late = False
        self._reported = False

    @property
    def running(self) -> bool:
        return self._pid != 0

    @property
    def stuck(self) -> bool:
        return self.running and self._reported

    @property
    def pid(self) -> int:
        return self._pid

    def descriptors(self) -> "tuple[int, ...]":
        return (self._pipe,) if self._pipe >= 0 else ()

    def start(self, command: Sequence[str], boot_s: float, environment: Mapping[str, str]) -> Optional[Ended]:
        """Start it, unless it runs; returns an end where it cannot be started."""
        if self.running:
            return None
        reading, writing = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        null = os.open("/dev/null", os.O_RDWR | os.O_CLOEXEC)
        try:
            os.set_blocking(writing, True)
            self._pid = os.posix_spawn(
                command[0],
                list(command),
                dict(environment),
                file_actions=[
                    (os.POSIX_SPAWN_DUP2, null, 0),
                    (os.POSIX_SPAWN_DUP2, writing, 1),
                    (os.POSIX_SPAWN_DUP2, null, 2),
                ],
                setsid=True,
                setsigdef=[signal.SIGPIPE],
            )
        except OSError as problem:
            os.close(reading)
            return Ended(code=None, output="", problem=f"cannot be started: {problem.strerror}")
        finally:
            os.close(writing)
            os.close(null)
        self._pipe, self._output, self._late, self._reported = reading, b"", False, False
        self._patience.begin(boot_s)
        return None

    def poll(self, boot_s: float) -> Optional[Ended]:
        """Return the end, once; also when the deadline has passed."""
        if not self.running:
            return None
        self._read()
        code = self._reaped()
        if code is not None:
            reported, late = self._reported, self._late
            self._finish()
            if reported:
                return None
            return self._late_end() if late else Ended(code=code, output=self._output.decode("utf-8", "replace"))
        if self._patience.turn(boot_s) > self.deadline_s and not self._late:
            self._late = True
            self._kill()
        if self._late and not self._reported and self._patience.waited_s > self.deadline_s + 1.0:
            self._reported = True  # SIGKILL did not end it within a second
            return self._late_end()
        return None

    def stop(self) -> None:
        if self.running:
            self._kill()

    def close(self) -> None:
        if self.running:
            self._kill()
            self._reaped()
            self._finish()

    def _late_end(self) -> Ended:
        text = self._output.decode("utf-8", "replace")
        return Ended(code=None, output=text, problem=f"did not end within {self.deadline_s:g} s")

    def _kill(self) -> None:
        with suppress(OSError):
            os.killpg(self._pid, signal.SIGKILL)

    def _read(self) -> None:
        while self._pipe >= 0:
            try:
                data = os.read(self._pipe, MOST_OUTPUT)
            except BlockingIOError:
                return
            except OSError:
                data = b""
            if not data:
                os.close(self._pipe)
                self._pipe = -1
            self._output = (self._output + data)[:MOST_OUTPUT]

    def _reaped(self) -> Optional[int]:
        try:
            pid, status = os.waitpid(self._pid, os.WNOHANG)
        except ChildProcessError:
            return -signal.SIGKILL
        if pid == 0:
            return None
        self._read()
        return os.waitstatus_to_exitcode(status)

    def _finish(self) -> None:
        if self._pipe >= 0:
            os.close(self._pipe)
            self._pipe = -1
        self._pid = 0
