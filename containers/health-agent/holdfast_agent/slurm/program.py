"""
Slurm's programs, run with a deadline.

A hung program is killed and not waited for: it may be unkillable. Until it is gone no second one is started, so that a
hung file system or controller does not fill the node with processes.
"""

import contextlib
import os
import selectors
import shutil
import signal
import subprocess
import time
from collections.abc import Sequence
from typing import Optional

MOST_BYTES = 64 << 20
_CHUNK_BYTES = 1 << 16


class SlurmError(Exception):
    """It could not be run, timed out, or refused; the message has the reason."""


class Program:
    """Runs commands, one at a time, each for at most ``timeout_s``."""

    def __init__(self, *, timeout_s: float = 10.0) -> None:
        self._timeout_s = timeout_s
        self._hung: Optional[subprocess.Popen[bytes]] = None

    def run(self, argv: Sequence[str]) -> str:
        """Output; raises SlurmError."""
        if self._hung is not None and self._hung.poll() is None:
            raise SlurmError(f"an earlier {self._hung.args!r} is stuck in the kernel; not starting another")
        self._hung = None
        try:
            process = subprocess.Popen(
                list(argv),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                env={**os.environ, "LC_ALL": "C", "SLURM_TIME_FORMAT": "standard"},
            )
        except OSError as error:
            raise SlurmError(f"{argv[0]}: {error}") from None
        assert process.stdout is not None
        with process.stdout:
            output = self._read(process)
        if output is None:
            with contextlib.suppress(OSError):
                os.killpg(process.pid, signal.SIGKILL)
            if self._ended(process, within_s=0.5) is None:
                self._hung = process
            raise SlurmError(f"{' '.join(argv)}: no answer within {self._timeout_s:g} s")
        code = self._ended(process, within_s=1.0)
        text = output.decode("utf-8", "replace")
        if code is None:
            self._hung = process
        if code != 0:
            raise SlurmError(f"{' '.join(argv)}: {text.strip()[-500:] or f'exit code {code}'}")
        return text

    def _read(self, process: "subprocess.Popen[bytes]") -> Optional[bytes]:
        assert process.stdout is not None
        until = time.monotonic() + self._timeout_s
        read = bytearray()
        with selectors.DefaultSelector() as selector:
            selector.register(process.stdout, selectors.EVENT_READ)
            while (left_s := until - time.monotonic()) > 0 and len(read) < MOST_BYTES:
                if not selector.select(left_s):
                    return None
                part = os.read(process.stdout.fileno(), _CHUNK_BYTES)
                if not part:
                    return bytes(read)
                read += part
        return None

    @staticmethod
    def _ended(process: "subprocess.Popen[bytes]", *, within_s: float) -> Optional[int]:
        try:
            return process.wait(within_s)
        except subprocess.TimeoutExpired:
            return None


def installed_version() -> str:
    """Output of ``scontrol -V``, or the reason why there is none; empty on a machine without Slurm."""
    if shutil.which("scontrol") is None:
        return ""
    try:
        return Program(timeout_s=5.0).run(["scontrol", "-V"]).strip()[:100]
    except SlurmError as problem:
        return " ".join(f"not known: {problem}".split())[:100]
