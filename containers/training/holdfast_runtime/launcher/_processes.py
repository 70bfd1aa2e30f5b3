"""Starts the processes of a node and sees their death at once, by a descriptor and never by asking again and again."""

import asyncio
import contextlib
import ctypes
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from holdfast_runtime.launcher._zygote import Request, die_with_parent

PR_SET_CHILD_SUBREAPER = 36
START_S = 300.0
"""Longest time that importing what processes share may take."""


class ZygoteError(RuntimeError):
    """The process that forks cannot be used."""


@dataclass
class Process:
    """One process of a slot."""

    pid: int
    pidfd: int
    control: socket.socket
    """This launcher's end."""
    ended: bool = False

    def kill(self, number: int = signal.SIGKILL) -> None:
        """Send a signal; nothing happens when the process is gone. A pidfd never hits another process."""
        if not self.ended:
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(self.pidfd, number)


@dataclass(frozen=True, kw_only=True)
class Program:
    """What each process runs."""

    arguments: tuple[str, ...]
    module: bool
    python: bool
    preload: tuple[str, ...]
    log_dir: Path | None


def _own_group() -> None:
    os.setpgid(0, 0)
    die_with_parent()


class Processes:
    """All processes of this launcher. Every death is told to ``on_exit`` with a sentence about how."""

    def __init__(self, program: Program, *, on_exit: Callable[[Process, int, str], None]) -> None:
        self._program = program
        self._on_exit = on_exit
        self._zygote: subprocess.Popen[bytes] | None = None
        self._line: socket.socket | None = None
        self._loop = asyncio.get_running_loop()
        self._one_at_a_time = asyncio.Lock()
        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)

    async def prepare(self) -> None:
        """Start the zygote and let it import; returns when it can fork."""
        if not self._program.python:
            return
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        command = [sys.executable, "-m", "holdfast_runtime.launcher._zygote", str(theirs.fileno())]
        self._zygote = subprocess.Popen([*command, *self._program.preload], pass_fds=[theirs.fileno()])
        theirs.close()
        ours.settimeout(0)
        try:
            answer = await asyncio.wait_for(self._loop.sock_recv(ours, 64), START_S)
        except asyncio.TimeoutError:
            answer = b""
        if answer != b"ready":
            ours.close()
            code = self._zygote.poll()
            raise ZygoteError(
                f"importing {', '.join(self._program.preload)} ended with exit code {code}; see the lines above, or "
                "name other modules with --preload"
            )
        ours.settimeout(10.0)
        self._line = ours

    async def start(self, environment: Mapping[str, str], *, name: str) -> Process:
        """A new process. Raises ZygoteError, OSError."""
        async with self._one_at_a_time:
            if self._program.python:
                ours, pid = await self._loop.run_in_executor(None, self._start, environment, name)
            else:
                ours, pid = self._start(environment, name)  # here: the death signal follows the thread that forks
        process = Process(pid=pid, pidfd=os.pidfd_open(pid), control=ours)
        self._loop.add_reader(process.pidfd, self._ended, process)
        return process

    def close(self) -> None:
        """End the zygote."""
        if self._line is not None:
            self._line.close()
            self._line = None
        if self._zygote is not None:
            self._zygote.kill()
            self._zygote.wait()
            self._zygote = None

    def _start(self, environment: Mapping[str, str], name: str) -> tuple[socket.socket, int]:
        ours, theirs = socket.socketpair()
        out = self._output(name)
        variables = {**environment, "HOLDFAST_LAUNCHER_PID": str(os.getpid())}
        try:
            start = self._fork if self._program.python else self._spawn
            return ours, start(variables, theirs, out)
        finally:
            theirs.close()
            if out != 1:
                os.close(out)

    def _output(self, name: str) -> int:
        if self._program.log_dir is None:
            return 1
        self._program.log_dir.mkdir(parents=True, exist_ok=True)
        return os.open(self._program.log_dir / f"{name}.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)

    def _fork(self, environment: Mapping[str, str], control: socket.socket, out: int) -> int:
        if self._line is None:
            raise ZygoteError("the process that forks is gone")
        request = Request(environment=dict(environment), arguments=self._program.arguments, module=self._program.module)
        errors = 2 if out == 1 else out
        try:
            socket.send_fds(self._line, [request.to_json()], [control.fileno(), out, errors])
            return int(self._line.recv(64))
        except (OSError, ValueError) as error:
            raise ZygoteError(f"the process that forks does not answer: {error}") from error

    def _spawn(self, environment: Mapping[str, str], control: socket.socket, out: int) -> int:
        variables = {**environment, "HOLDFAST_CONTROL_FD": str(control.fileno())}
        errors = 2 if out == 1 else out
        child = subprocess.Popen(
            self._program.arguments,
            env=variables,
            stdout=out,
            stderr=errors,
            pass_fds=[control.fileno()],
            preexec_fn=_own_group,
        )
        child.returncode = 0  # reaped here by pidfd, not by its Popen
        return child.pid

    def _ended(self, process: Process) -> None:
        self._loop.remove_reader(process.pidfd)
        result = os.waitid(os.P_PIDFD, process.pidfd, os.WEXITED)
        os.close(process.pidfd)
        process.ended = True
        code, how = 0, "it ended"
        if result is not None and result.si_code == os.CLD_EXITED:
            code, how = result.si_status, f"it ended with exit code {result.si_status}"
        elif result is not None:
            code, how = -result.si_status, f"it was killed by {signal.Signals(result.si_status).name}"
        self._on_exit(process, code, how)
