"""
Python programs that begin with their imports done: one process imports, and each program is a fork of it.

``python warm.py DESCRIPTOR MODULE...`` is that process.
"""

import ctypes
import gc
import importlib
import json
import os
import runpy
import signal
import socket
import subprocess
import sys
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import IO, NoReturn

MESSAGE_BYTES = 1 << 17


class Program:
    """A running program, as ``subprocess.Popen`` shows one."""

    def __init__(self, pid: int, stdin: IO[str], stdout: IO[str], code: IO[str]) -> None:
        self.pid, self.stdin, self.stdout, self._code = pid, stdin, stdout, code
        self.returncode: int | None = None

    def wait(self) -> int:
        """The exit code, negative for a signal, once it has ended."""
        if self.returncode is None:
            self.returncode = int(self._code.readline())
        return self.returncode

    def communicate(self) -> str:
        """All that it still says, once it has ended."""
        self.stdin.close()
        said = self.stdout.read()
        self.wait()
        return said

    def send_signal(self, number: int) -> None:
        if self.returncode is None:
            os.kill(self.pid, number)

    def close(self) -> None:
        """End it, if it has not ended."""
        try:
            os.kill(self.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        else:
            self.wait()
        for stream in (self.stdin, self.stdout, self._code):
            stream.close()


class Warm:
    """Starts programs."""

    def __init__(self, line: socket.socket) -> None:
        self._line = line

    @contextmanager
    def program(
        self, *argv: str, environment: Mapping[str, str] | None = None, errors: bool = False
    ) -> Iterator[Program]:
        """
        A program with these arguments, the first its file.

        Args:
            environment: Default: this process's.
            errors: Whether standard error goes where standard output goes, and warnings are errors.
        """
        pipes = [os.pipe() for _ in range(3)]
        (stdin, ours_in), (ours_out, stdout), (ours_code, code) = pipes
        request = {"argv": argv, "environment": dict(environment or os.environ), "errors": errors}
        socket.send_fds(self._line, [json.dumps(request).encode()], [stdin, stdout, code])
        for descriptor in (stdin, stdout, code):
            os.close(descriptor)
        told = os.fdopen(ours_code)
        pid = int(told.readline())
        started = Program(pid, os.fdopen(ours_in, "w"), os.fdopen(ours_out), told)
        try:
            yield started
        finally:
            started.close()


@contextmanager
def warm(*modules: str, environment: Mapping[str, str] | None = None) -> Iterator[Warm]:
    """A process that has imported the modules; it and its programs end with the block."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with ours:
        with theirs:
            command = [sys.executable, __file__, str(theirs.fileno()), *modules]
            process = subprocess.Popen(command, pass_fds=[theirs.fileno()], env=dict(environment or os.environ))
        with process:
            try:
                yield Warm(ours)
            finally:
                process.kill()


def main() -> None:
    line = socket.socket(fileno=int(sys.argv[1]))
    die_with_parent()
    for name in sys.argv[2:]:
        importlib.import_module(name)
    gc.freeze()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    while True:
        data, descriptors, _, _ = socket.recv_fds(line, MESSAGE_BYTES, 3)
        if not data:
            return
        if os.fork() == 0:
            line.close()
            watch(json.loads(data), descriptors)
        for descriptor in descriptors:
            os.close(descriptor)


def watch(request: Mapping[str, object], descriptors: Sequence[int]) -> NoReturn:
    """Fork once more, and tell of that process its id and how it ends."""
    die_with_parent()
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    stdin, stdout, code = descriptors
    pid = os.fork()
    if pid == 0:
        os.close(code)
        become(request, stdin, stdout)
    os.close(stdin)
    os.close(stdout)
    os.write(code, f"{pid}\n".encode())
    _, status = os.waitpid(pid, 0)
    os.write(code, f"{os.waitstatus_to_exitcode(status)}\n".encode())
    os._exit(0)


def become(request: Mapping[str, object], stdin: int, stdout: int) -> NoReturn:
    """Run the program in this process."""
    die_with_parent()
    os.dup2(stdin, 0)
    os.dup2(stdout, 1)
    if request["errors"]:
        os.dup2(stdout, 2)
        warnings.simplefilter("error")
    os.environ.clear()
    os.environ.update(request["environment"])  # type: ignore[call-overload]
    sys.argv = list(request["argv"])  # type: ignore[call-overload]
    sys.path[0] = os.path.dirname(sys.argv[0])  # noqa: PTH120
    status = 0
    try:
        runpy.run_path(sys.argv[0], run_name="__main__")
    except SystemExit as error:
        status = error.code if isinstance(error.code, int) else int(error.code is not None)
    except BaseException:  # noqa: BLE001 - as Python ends
        sys.excepthook(*sys.exc_info())
        status = 1
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


def die_with_parent() -> None:
    ctypes.CDLL(None, use_errno=True).prctl(1, signal.SIGKILL)


if __name__ == "__main__":
    main()
