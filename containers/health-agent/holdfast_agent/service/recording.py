"""Recording of signals for ``replay``: two files of bounded size."""

import os
from pathlib import Path

from holdfast_agent.signals import Signal
from holdfast_agent.verdicts import recorded

MOST_BYTES = 8 << 20


class Recording:
    def __init__(self, path: Path) -> None:
        self._path = path
        self.problem = ""

    def keep(self, signal: Signal) -> None:
        """Append it; a full disk loses the recording only."""
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            descriptor = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
            try:
                os.write(descriptor, recorded(signal).encode() + b"\n")
                full = os.fstat(descriptor).st_size >= MOST_BYTES
            finally:
                os.close(descriptor)
            if full:
                self._path.replace(self._path.with_name(f"{self._path.name}.1"))
            self.problem = ""
        except OSError as problem:
            self.problem = str(problem)
