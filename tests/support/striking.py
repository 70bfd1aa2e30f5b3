"""`holdfast up` is struck: at a stage, as it shows on its terminal, or after some seconds."""

import contextlib
import os
import pty
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Literal

Strike = Literal["down", "SIGINT", "SIGKILL"]
STRIKES: tuple[Strike, ...] = ("down", "SIGINT", "SIGKILL")
ENDS_WITHIN_S = 420.0
BEGINS_WITHIN_S = 300.0
_ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


class Struck:
    """A `holdfast up` on a terminal of its own."""

    def __init__(self, product: Any, *arguments: str) -> None:
        self._product = product
        self._shown = ""
        terminal, its_end = pty.openpty()
        self.child = subprocess.Popen(
            [str(Path(sys.executable).parent / "holdfast"), "up", *arguments],
            env={**os.environ, **product.variables, "COLUMNS": "200"},
            stdin=subprocess.DEVNULL,
            stdout=its_end,
            stderr=its_end,
        )
        os.close(its_end)
        self._reader = threading.Thread(target=self._read, args=(terminal,))
        self._reader.start()

    def _read(self, terminal: int) -> None:
        with open(terminal, "rb", buffering=0) as file, contextlib.suppress(OSError):  # EIO: nobody writes any more
            while content := file.read(4096):
                self._shown += content.decode(errors="replace")

    @property
    def shown(self) -> str:
        return _ESCAPES.sub("", self._shown)

    def wait_for(self, stage: str) -> None:
        """Return when a stage has begun."""
        deadline = time.monotonic() + BEGINS_WITHIN_S
        while stage not in self.shown:
            assert self.child.poll() is None, f"it ended before {stage!r}:\n{self.shown}"
            assert time.monotonic() < deadline, f"it did not come to {stage!r}:\n{self.shown}"
            time.sleep(0.005)

    def strike(self, how: Strike) -> None:
        """Strike it, and return when it is gone; one that had ended well by then was not struck."""
        if how == "down":
            self._product.run("down")
        else:
            self.child.send_signal(signal.Signals[how])
        self.child.wait(timeout=ENDS_WITHIN_S)
        self._reader.join()
        assert "Traceback" not in self.shown, self.shown


@contextlib.contextmanager
def up_begun(product: Any, *arguments: str) -> Iterator[Struck]:
    """Start it; it is gone at the end whatever happens."""
    struck = Struck(product, *arguments)
    try:
        yield struck
    finally:
        struck.child.kill()
        struck.child.wait()


def full_cycle(product: Any, environment: str, *, traces: Callable[[Path], set[str]]) -> None:
    """The next `up` takes the home, all nodes run, and `down` leaves nothing."""
    product.run("up", environment)
    view = product.status()
    assert view["cluster_status"] == "InService"
    assert {node["status"] for node in view["nodes"]} == {"Running"}
    assert view["problem"] == ""
    product.run("down")
    assert traces(product.home) == set()
    assert not product.home.exists()
