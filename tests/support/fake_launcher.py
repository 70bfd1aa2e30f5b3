"""The launcher's end of a control socket, for tests of what a rank does with views and leaves."""

import contextlib
import socket
import threading
import time
from collections.abc import Iterator
from typing import TypeVar

import pytest

from holdfast_runtime.control import FROM_RANK, TO_RANK, FromRank, Leave, MessageError, Plan, Stop, ToRank, View

T = TypeVar("T", bound=FromRank)
WAIT_S = 10.0


class FakeLauncher:
    """Collects what the rank says; says what the test wants."""

    def __init__(self) -> None:
        self._mine, theirs = socket.socketpair()
        self.descriptor = theirs.detach()
        """For HOLDFAST_CONTROL_FD; the rank closes it."""
        self.said: list[FromRank] = []
        self._more = threading.Condition()
        self._thread = threading.Thread(target=self._listen, daemon=True)
        self._thread.start()

    @staticmethod
    @contextlib.contextmanager
    def of_this_process(monkeypatch: pytest.MonkeyPatch) -> "Iterator[FakeLauncher]":
        """One whose rank is what this process makes, in an environment that has nothing else of a job."""
        for name in ("HOLDFAST_FAULTS", "HOLDFAST_TOKEN", "HOLDFAST_GENERATION", "RANK", "WORLD_SIZE"):
            monkeypatch.setenv(name, "")
        fake = FakeLauncher()
        monkeypatch.setenv("HOLDFAST_CONTROL_FD", str(fake.descriptor))
        yield fake
        fake.close()

    def send(self, message: ToRank) -> None:
        self._mine.sendall(TO_RANK.encode(message) + b"\n")

    def leave(self, generation: int) -> None:
        self.send(Leave(generation=generation, reason="a test wants it"))

    def view(
        self, generation: int, *, step: int = 0, source: str = "memory", world_size: int = 1, rank: int = 0
    ) -> None:
        plan = Plan(source=source)  # type: ignore[arg-type]
        self.send(View(generation=generation, rank=rank, world_size=world_size, resume_step=step, plan=plan))

    def stop(self, exit_code: int = 1) -> None:
        self.send(Stop(reason="a test wants it", exit_code=exit_code))

    def wait(self, kind: type[T], *, count: int = 1) -> T:
        """The ``count``-th message of a kind, once the rank has sent it."""
        end = time.monotonic() + WAIT_S
        with self._more:
            while True:
                found = [message for message in self.said if isinstance(message, kind)]
                if len(found) >= count:
                    return found[count - 1]
                left = end - time.monotonic()
                assert left > 0, f"the rank has sent {len(found)} {kind.__name__} and not {count}"
                self._more.wait(left)

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._mine.shutdown(socket.SHUT_RDWR)
        self._thread.join()
        self._mine.close()

    def _listen(self) -> None:
        with self._mine.makefile("rb") as lines:
            for line in lines:
                try:
                    message = FROM_RANK.decode(line)
                except MessageError:
                    continue
                with self._more:
                    self.said.append(message)
                    self._more.notify_all()
