"""Starts the processes of a node and sees their death at once, by what the kernel tells and never by asking again."""

import asyncio
import contextlib
import ctypes
import fcntl
import os
import signal
import socket
import subprocess
import termios
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from holdfast_runtime.control import Deadlines
from holdfast_runtime.launcher.ranks.forker import Child, Forker
from holdfast_runtime.launcher.ranks.process_state import holds_device
from holdfast_runtime.launcher.zygote import Request, die_with_parent

PR_SET_CHILD_SUBREAPER = 36
COLLECT_AFTER_S = 0.5
"""For children that are killed with their rank to end, and theirs."""
HINTS = {"SIGBUS": " (a file that it had mapped became shorter, or the memory of a mapped file is full)"}


@dataclass
class Process:
    """One process of a slot."""

    pid: int
    pidfd: int
    control: socket.socket
    """This launcher's end."""
    ended: bool = False
    killed_s: float | None = None
    """When SIGKILL was first sent to it; None before."""

    @property
    def has_device(self) -> bool:
        return holds_device(self.pid)

    @property
    def has_message(self) -> bool:
        waiting = bytearray(4)
        with contextlib.suppress(OSError, ValueError):
            fcntl.ioctl(self.control.fileno(), termios.FIONREAD, waiting)
        return any(waiting)

    def kill(self, number: int = signal.SIGKILL) -> None:
        if not self.ended:
            if number == signal.SIGKILL and self.killed_s is None:
                self.killed_s = time.monotonic()
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(self.pidfd, number)
            if number == signal.SIGKILL:
                self.kill_children()

    def kill_children(self) -> None:
        """Kill what is in the group of the process, which it leads: to be called before its end is collected."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, signal.SIGKILL)

    def collect_children(self) -> None:
        """Collect the ends of its children, which this process has adopted."""
        with contextlib.suppress(ChildProcessError):
            while os.waitpid(-self.pid, os.WNOHANG)[0]:
                pass


@dataclass(frozen=True, kw_only=True)
class Program:
    """Program of the ranks."""

    arguments: tuple[str, ...]
    module: bool
    python: bool
    preload: tuple[str, ...]
    log_dir: Path | None


def _own_group() -> None:
    os.setpgid(0, 0)
    die_with_parent()


class Processes:
    """
    All processes of this launcher.

    Args:
        on_forker_lost: Told how the process that forks was lost; it is made anew.
    """

    def __init__(
        self,
        program: Program,
        *,
        deadlines: Deadlines,
        on_forker_lost: Callable[[str], None],
    ) -> None:
        self._program = program
        self._pids: set[int] = set()
        self._loop = asyncio.get_running_loop()
        self._one_at_a_time = asyncio.Lock()
        self._forker = Forker(
            preload=program.preload,
            start_s=deadlines.start,
            answer_s=deadlines.frozen,
            on_lost=on_forker_lost,
            known=lambda: {*self._pids},
        )
        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)

    @property
    def forker_pid(self) -> int | None:
        """Of the process that forks; None where there is none."""
        return self._forker.pid

    def kill_forker(self) -> None:
        self._forker.kill()

    async def prepare(self) -> None:
        """Returns when processes can be started. Raises ForkError."""
        if self._program.python:
            await self._forker.prepare()

    async def start(
        self, environment: Mapping[str, str], *, name: str, on_exit: Callable[[Process, int, str], None]
    ) -> Process:
        """A new process. Raises ForkError, OSError."""
        variables = {**environment, "HOLDFAST_LAUNCHER_PID": str(os.getpid())}
        async with self._one_at_a_time:
            out = self._output(name)
            try:
                child = await self._fork(variables, out) if self._program.python else self._spawn(variables, out)
            finally:
                if out != 1:
                    os.close(out)
            self._pids.add(child.pid)
        process = Process(pid=child.pid, pidfd=os.pidfd_open(child.pid), control=child.control)
        self._loop.add_reader(process.pidfd, self._ended, process, on_exit)
        return process

    def close(self) -> None:
        self._forker.close()

    def _output(self, name: str) -> int:
        if self._program.log_dir is None:
            return 1
        self._program.log_dir.mkdir(parents=True, exist_ok=True)
        return os.open(self._program.log_dir / f"{name}.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)

    async def _fork(self, environment: Mapping[str, str], out: int) -> Child:
        request = Request(environment=dict(environment), arguments=self._program.arguments, module=self._program.module)
        return await self._forker.fork(request, out=out, err=2 if out == 1 else out)

    def _spawn(self, environment: Mapping[str, str], out: int) -> Child:
        ours, theirs = socket.socketpair()
        variables = {**environment, "HOLDFAST_CONTROL_FD": str(theirs.fileno())}
        try:
            with theirs:
                child = subprocess.Popen(
                    self._program.arguments,
                    env=variables,
                    stdout=out,
                    stderr=2 if out == 1 else out,
                    pass_fds=[theirs.fileno()],
                    preexec_fn=_own_group,
                )
        except BaseException:
            ours.close()
            raise
        child.returncode = 0  # reaped here by pidfd, not by its Popen
        return Child(child.pid, ours)

    def _ended(self, process: Process, on_exit: Callable[[Process, int, str], None]) -> None:
        self._loop.remove_reader(process.pidfd)
        result = os.waitid(os.P_PIDFD, process.pidfd, os.WEXITED | os.WNOWAIT)
        if result is not None and (result.si_code != os.CLD_EXITED or result.si_status):
            process.kill_children()  # those of one that ends well may have work left, such as an upload
            self._loop.call_later(COLLECT_AFTER_S, process.collect_children)
        os.waitid(os.P_PIDFD, process.pidfd, os.WEXITED)
        os.close(process.pidfd)
        process.ended = True
        self._pids.discard(process.pid)
        code, how = 0, "it ended"
        if result is not None and result.si_code == os.CLD_EXITED:
            code, how = result.si_status, f"it ended with exit code {result.si_status}"
        elif result is not None:
            code, how = -result.si_status, _killed(result.si_status)
        on_exit(process, code, how)


def _killed(number: int) -> str:
    name = signal.Signals(number).name
    return f"it was killed by {name}{HINTS.get(name, '')}"
