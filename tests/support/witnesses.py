"""The witness as a real process on loopback, which a test may kill, stop and start again at the same port."""

import ctypes
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from killing import PYTHONPATH
from ports import free_ports

NODE_LOST = {"kind": "SIGKILL", "phase": "bucket:1", "rank": 1, "step": 4, "victims": ["launcher"]}
"""The launcher of rank 1's node is killed, and its ranks and spares with it."""


class WitnessProcess:
    """One that a service manager would keep."""

    def __init__(self, folder: Path) -> None:
        self._log = folder / "witness.log"
        (self.port,) = free_ports(1)
        self._process: subprocess.Popen[bytes] | None = None
        self.start()

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    @property
    def text(self) -> str:
        return self._log.read_text()

    def start(self) -> None:
        """Begin, or begin again without any memory."""
        command = [sys.executable, "-m", "holdfast_runtime.witness", "--host", "127.0.0.1", "--port", str(self.port)]
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                command, stderr=log, env={**os.environ, "PYTHONPATH": PYTHONPATH}, preexec_fn=_die_with_parent
            )
        end = time.monotonic() + 60.0
        with socket.socket() as caller:
            while caller.connect_ex(("127.0.0.1", self.port)):
                assert time.monotonic() < end, self.text
                time.sleep(0.02)

    def kill(self) -> None:
        assert self._process is not None
        self._process.kill()
        self._process.wait()

    def signal(self, number: signal.Signals) -> None:
        assert self._process is not None
        self._process.send_signal(number)


@contextmanager
def witness(folder: Path) -> Iterator[WitnessProcess]:
    """A witness that is gone when the block ends."""
    process = WitnessProcess(folder)
    try:
        yield process
    finally:
        process.kill()


def _die_with_parent() -> None:
    ctypes.CDLL(None).prctl(1, signal.SIGKILL, 0, 0, 0)
