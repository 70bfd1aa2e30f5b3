"""The recovery tests' program, in which rank 2 is lost when it has told its address and has not called anybody yet."""

import os
import signal
import sys
import time
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from unittest.mock import patch

import runtime_program

from holdfast_runtime.store import GenerationStore

GENERATION = 3
"""That of the recovery after the first loss."""
OTHERS_WAIT_S = 1.0
"""Until all others have its address, and wait for its call."""


class Dying(GenerationStore):
    def get(self, key: str) -> bytes:
        self._die()
        return super().get(key)

    def wait(self, keys: Sequence[str], timeout: timedelta | None = None) -> None:
        self._die()
        super().wait(keys, timeout)

    def _die(self) -> None:
        mark = Path(sys.argv[1]) / "fired" / "0.told"
        if self._generation == GENERATION and os.environ["RANK"] == "2" and not mark.exists():
            mark.write_text("")
            time.sleep(OTHERS_WAIT_S)
            os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    patch("holdfast_runtime.inprocess.member.telling.GenerationStore", Dying).start()
    runtime_program.main()
