"""The launcher's end of the process that forks ranks: it is watched as ranks are, and made anew when it is lost."""

import asyncio
import contextlib
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from holdfast_runtime.launcher.zygote import BEGIN, Request

TRIES = 3
"""For a fork, and for a start that a signal ended."""


class ForkError(RuntimeError):
    """No process can be forked."""


@dataclass(frozen=True)
class Child:
    """A process that was started."""

    pid: int
    control: socket.socket
    """The launcher's end."""


class Forker:
    """
    Forks on request, whatever happens to the process that does it.

    Args:
        start_s: Longest time for importing them.
        answer_s: Longest time for one fork, and for which the launcher may be stopped.
        on_lost: Told how it was lost, each time; another one is started then.
        known: Process ids of the children that this launcher knows of; others are not left behind.
    """

    def __init__(
        self,
        *,
        preload: tuple[str, ...],
        start_s: float,
        answer_s: float,
        on_lost: Callable[[str], None],
        known: Callable[[], set[int]],
    ) -> None:
        self._preload = preload
        self._start_s = start_s
        self._answer_s = answer_s
        self._on_lost = on_lost
        self._known = known
        self._loop = asyncio.get_running_loop()
        self._process: subprocess.Popen[bytes] | None = None
        self._line: socket.socket | None = None
        self._pidfd = -1
        self._starting = asyncio.Lock()
        self._again: asyncio.Task[None] | None = None
        self._closed = False

    @property
    def pid(self) -> int | None:
        """Of the process that forks; None while there is none."""
        return self._process.pid if self._process is not None else None

    async def prepare(self) -> None:
        """Return once it can fork. Raises ForkError."""
        async with self._starting:
            for left in reversed(range(TRIES)):
                if self._line is not None or self._closed:
                    return
                await self._start(last=not left)

    async def fork(self, request: Request, *, out: int, err: int) -> Child:
        """
        A new process. Called once at a time.

        Each try has a control socket of its own. A process that comes from one that was given up finds it closed, and
        ends before it has run a line of the program: it would be a second one in the place of the next.

        Raises:
            ForkError: nobody answers, also when the process that forks was started anew.
        """
        problem = ""
        for _ in range(TRIES):
            await self.prepare()
            line = self._line
            if line is None:
                continue
            ours, theirs = socket.socketpair()
            descriptors = [theirs.fileno(), out, err]
            try:
                pid = await self._loop.run_in_executor(None, _ask, line, request, descriptors)
                ours.sendall(BEGIN)
            except (OSError, ValueError) as error:
                ours.close()
                problem = f"the process that forks does not answer: {error}"
                if self._line is line:
                    self._lost(problem)
                end_orphans(self._known() | {self.pid or 0})
            except BaseException:
                ours.close()
                raise
            else:
                if problem:
                    end_orphans(self._known() | {self.pid or 0, pid})
                return Child(pid, ours)
            finally:
                theirs.close()
        raise ForkError(problem or "the launcher ends")

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()

    def close(self) -> None:
        self._closed = True
        if self._again is not None:
            self._again.cancel()
        self._drop()

    async def _start(self, *, last: bool) -> None:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        command = [sys.executable, "-m", "holdfast_runtime.launcher.zygote", str(theirs.fileno())]
        command.append(f"{self._answer_s:g}")
        with theirs:
            process = subprocess.Popen([*command, *self._preload], pass_fds=[theirs.fileno()])
        self._process = process
        ours.settimeout(0)
        answer, end_s = b"", self._answer_s
        try:
            answer = await asyncio.wait_for(self._loop.sock_recv(ours, 64), self._start_s)
        except asyncio.TimeoutError:
            end_s = 0.0
        except OSError:
            pass
        if answer == b"ready":
            ours.settimeout(self._answer_s)
            self._line = ours
            self._pidfd = os.pidfd_open(process.pid)
            self._loop.add_reader(self._pidfd, self._ended, process)
            return
        ours.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            await self._loop.run_in_executor(None, process.wait, end_s)
        code = process.poll()
        self._drop()
        if last or code is None or code >= 0:
            raise ForkError(
                f"importing {', '.join(self._preload)} "
                + (f"took longer than {self._start_s:g} s" if code is None else f"ended with exit code {code}")
                + "; see the lines above, or name other modules with --preload"
            )

    def _ended(self, process: subprocess.Popen[bytes]) -> None:
        if process is self._process:
            code = process.wait()
            how = f"killed by {signal.Signals(-code).name}" if code < 0 else f"ended with exit code {code}"
            self._lost(f"the process that forks was {how}" if code < 0 else f"the process that forks {how}")

    def _lost(self, how: str) -> None:
        if self._line is None or self._closed:
            return
        self._drop()
        self._on_lost(how)
        self._again = self._loop.create_task(self._prepare_again())

    async def _prepare_again(self) -> None:
        with contextlib.suppress(ForkError):  # whoever needs it tries once more, and tells
            await self.prepare()

    def _drop(self) -> None:
        if self._pidfd >= 0:
            self._loop.remove_reader(self._pidfd)
            os.close(self._pidfd)
            self._pidfd = -1
        if self._line is not None:
            self._line.close()
            self._line = None
        if self._process is not None:
            self._process.kill()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(1.0)
            self._process = None


def _ask(line: socket.socket, request: Request, descriptors: list[int]) -> int:
    socket.send_fds(line, [request.to_json()], descriptors)
    answer = line.recv(64)
    if not answer:
        raise ConnectionError("it is gone")
    return int(answer)


def end_orphans(known: set[int]) -> None:
    """Kill the children that this process has adopted and does not know, and their children after them."""
    while found := _children() - known:
        for pid in found:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)


def _children() -> set[int]:
    found: set[int] = set()
    for task in Path("/proc/self/task").iterdir():
        with contextlib.suppress(OSError):  # a thread may end meanwhile
            found.update(map(int, (task / "children").read_text().split()))
    return found
