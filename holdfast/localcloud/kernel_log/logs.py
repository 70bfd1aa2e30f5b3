"""Client of the process that serves kernel logs: start, stop, attach, write."""

import contextlib
import fcntl
import os
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

_PROGRAM = "import sys; sys.path.insert(0, sys.argv.pop(1)); from program.server import main; main()"
_SOCKET, _PROCESS = "socket", "process"
_START_TIMEOUT_S = 30.0
_ANSWER_TIMEOUT_S = 10.0
_MOST_BYTES = 1 << 15
"""Of records in one request."""


class KernelLogError(Exception):
    """The kernel log of a node is not available; the message says why."""


class KernelLogs:
    """Kernel logs of one home, in a folder of ``directory``. Thread-safe, from any root process."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory / "kernel-log"

    def start(self) -> bool:
        """Start the process; return False if it runs. Else running nodes have no log. Raise KernelLogError."""
        self._directory.mkdir(exist_ok=True)
        with self._starting():
            if self.is_running():
                return False
            self._start()
            return True

    def _start(self) -> None:
        log = self._directory / "log"
        command = [sys.executable, "-I", "-S", "-c", _PROGRAM, str(Path(__file__).parent)]
        with log.open("ab") as output:
            starting = subprocess.Popen(
                [*command, "--socket", str(self._directory / _SOCKET)],
                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=output, cwd="/", start_new_session=True,
            )  # fmt: skip
            try:
                code = starting.wait(_START_TIMEOUT_S)
            except BaseException:
                starting.kill()
                starting.wait()
                raise
        if not code:
            self._record()
        else:
            reported = log.read_text(errors="replace")[-500:]
            raise KernelLogError(f"the kernel logs of nodes are not served: exit code {code}: {reported}")

    def _record(self) -> None:
        with self._connected() as connection:
            pid = _peer(connection)
        fresh = self._directory / f"{_PROCESS}.new"
        fresh.write_text(f"{pid} {_start_ticks(pid)}")
        fresh.replace(self._directory / _PROCESS)

    def process(self) -> tuple[int, int] | None:
        """Return pid and start, in clock ticks since boot, of the last process; None after ``stop``."""
        try:
            pid, ticks = (self._directory / _PROCESS).read_text().split()
        except (OSError, ValueError):
            return None
        return int(pid), int(ticks)

    def is_running(self) -> bool:
        with contextlib.suppress(OSError), self._connected():
            return True
        return False

    def stop(self) -> None:
        """Stop the process; blocked readers are released."""
        (self._directory / _PROCESS).unlink(missing_ok=True)
        with contextlib.suppress(OSError), self._connected() as connection:
            pidfd = os.pidfd_open(_peer(connection))
            try:
                signal.pidfd_send_signal(pidfd, signal.SIGKILL)
                select.select([pidfd], [], [], _ANSWER_TIMEOUT_S)
            finally:
                os.close(pidfd)
        (self._directory / _SOCKET).unlink(missing_ok=True)

    def attach(self, name: str, *, fuse: int) -> None:
        """Serve a node's log on a descriptor of /dev/fuse that is, or will be, mounted in it."""
        self._ask(b"attach\0" + name.encode(), handed=[fuse])

    def write(self, name: str, lines: Sequence[str], *, level: int = 3) -> None:
        """Write records, level 0 (emergency) to 7 (debug). Raise KernelLogError if the node has no log."""
        head = b"\0".join([b"write", name.encode(), b"%d" % level])
        part, size = [head], 0
        for line in lines:
            data = line.replace("\0", "").encode()
            if size + len(data) > _MOST_BYTES and len(part) > 1:
                self._ask(b"\0".join(part), name=name)
                part, size = [head], 0
            part.append(data)
            size += len(data)
        self._ask(b"\0".join(part), name=name)

    def names(self) -> list[str]:
        return [word.decode() for word in self._ask(b"ask").split(b"\0")[1:]]

    def _ask(self, message: bytes, *, handed: Sequence[int] = (), name: str = "") -> bytes:
        try:
            with self._connected() as connection:
                socket.send_fds(connection, [message], list(handed))
                answer = connection.recv(1 << 18)
        except OSError as error:
            raise KernelLogError(
                f"the process that serves the kernel logs of nodes does not respond: {error}"
            ) from None
        if not answer.startswith(b"ok"):
            whom = f"node {name}: " if name else ""
            raise KernelLogError(f"{whom}the kernel log cannot be written: {answer.decode() or 'it has ended'}")
        return answer

    @contextlib.contextmanager
    def _connected(self) -> Iterator[socket.socket]:
        with contextlib.ExitStack() as opened:
            folder = os.open(self._directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            opened.callback(os.close, folder)
            connection = opened.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET))
            connection.settimeout(_ANSWER_TIMEOUT_S)
            connection.connect(f"/proc/self/fd/{folder}/{_SOCKET}")  # a socket's path is limited to 107 characters
            yield connection

    @contextlib.contextmanager
    def _starting(self) -> Iterator[None]:
        folder = os.open(self._directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            deadline = time.monotonic() + _START_TIMEOUT_S
            while not _locked(folder):
                if time.monotonic() > deadline:
                    raise KernelLogError("timed out: another process is starting the kernel logs")
                time.sleep(0.01)
            yield
        finally:
            os.close(folder)


def _peer(connection: socket.socket) -> int:
    credentials = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
    return int.from_bytes(credentials[:4], sys.byteorder)


def _start_ticks(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19])


def _locked(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
