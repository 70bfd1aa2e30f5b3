"""The recovery tests' program, in which rank 2 of an epoch is lost right after it has told its address."""

import os
import signal
import sys
from pathlib import Path

import runtime_program

from holdfast_runtime.inprocess import _member
from holdfast_runtime.store import EpochStore

EPOCH = 3
"""That of the recovery after the first loss."""


class Dying(EpochStore):
    def set(self, key: str, value: str | bytes) -> None:
        super().set(key, value)
        mark = Path(sys.argv[1]) / "fired" / "0.told"
        if self._epoch == EPOCH and os.environ["RANK"] == "2" and not mark.exists():
            mark.write_text("")
            os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    _member.EpochStore = Dying  # type: ignore[misc]
    runtime_program.main()
