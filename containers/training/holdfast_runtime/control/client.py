"""The rank's end of the control socket."""

import contextlib
import faulthandler
import os
import socket
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping

from holdfast_runtime.control.codec import MessageError
from holdfast_runtime.control.deadlines import Deadlines
from holdfast_runtime.control.keys import KeyBox
from holdfast_runtime.control.messages import (
    FROM_RANK,
    TO_RANK,
    Build,
    Changed,
    Dump,
    FromRank,
    HandOver,
    Hello,
    Keys,
    Leave,
    Stop,
    ToRank,
    View,
)
from holdfast_runtime.control.stopped import LauncherWatch, timeval

VARIABLE = "HOLDFAST_CONTROL_FD"
WAIT_S = 3600.0
"""A wait without an end is many of these: the operating system takes no longer ones."""


class LauncherLostError(ConnectionError):
    """The launcher has closed the control socket: it is dead, or ends."""


class ControlClient:
    """
    Sends messages and receives those of the launcher; any thread may use it.

    A thread reads the socket all the time, because ``leave`` has to reach a rank that is blocked in a collective:
    ``on_leave`` is called there, at once, as is ``on_hand_over``. Entries of the store go to ``keys``; views and stops
    wait for ``receive``.
    """

    def __init__(
        self,
        connection: socket.socket,
        *,
        on_leave: Callable[[Leave], None] | None = None,
        on_hand_over: Callable[[HandOver], None] = lambda _message: None,
        deadlines: Deadlines | None = None,
    ) -> None:
        """
        Say hello and begin to listen.

        Args:
            on_leave: Must not raise. Default: leaves wait for ``receive`` too.
            on_hand_over: Must not raise. Default: nothing is done.
            deadlines: Of the launcher. Default: the defaults.
        """
        deadlines = deadlines or Deadlines()
        self.keys = KeyBox(self.send)
        self._connection = connection
        connection.settimeout(None)
        # A launcher that reads nothing for so long is lost, whatever the operating system says of it.
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, timeval(deadlines.view))
        parent = os.getppid()
        self._launcher = LauncherWatch(
            pid=parent if os.environ.get("HOLDFAST_LAUNCHER_PID") == str(parent) else 0, limit_s=deadlines.frozen
        )
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, timeval(self._launcher.every_s))
        self._on_leave = on_leave
        self._on_hand_over = on_hand_over
        self._sending = threading.Lock()
        self._arrived = threading.Condition()
        self._inbox: deque[ToRank] = deque()
        self._lost = ""
        self._thread = threading.Thread(target=self._listen, name="holdfast-control", daemon=True)
        self._thread.start()
        self.send(Hello(pid=os.getpid()))

    @staticmethod
    def from_environment(
        environment: Mapping[str, str] = os.environ,
        *,
        on_leave: Callable[[Leave], None] | None = None,
        on_hand_over: Callable[[HandOver], None] = lambda _message: None,
    ) -> "ControlClient | None":
        """The client of this process, or None where there is no launcher."""
        number = environment.get(VARIABLE)
        if not number:
            return None
        return ControlClient(
            socket.socket(fileno=int(number)),
            on_leave=on_leave,
            on_hand_over=on_hand_over,
            deadlines=Deadlines.from_environment(environment),
        )

    def send(self, message: FromRank) -> None:
        """Send a message. Raises LauncherLostError."""
        with self._sending:
            try:
                self._connection.sendall(FROM_RANK.encode(message) + b"\n")
            except OSError as error:
                raise LauncherLostError(f"the launcher cannot be reached: {error}") from error

    def receive(self, *, deadline_s: float) -> ToRank:
        """The next message, in the order of arrival. Raises TimeoutError after ``deadline_s``, LauncherLostError."""
        end = time.monotonic() + deadline_s
        with self._arrived:
            while not self._inbox:
                if self._lost:
                    raise LauncherLostError(self._lost)
                left = end - time.monotonic()
                if left <= 0:
                    raise TimeoutError(f"nothing from the launcher for {deadline_s} s")
                self._arrived.wait(min(left, WAIT_S))
            return self._inbox.popleft()

    def receive_view(self, *, deadline_s: float, after: int = 0) -> View | Stop:
        end = time.monotonic() + deadline_s
        while True:
            message = self.receive_place(deadline_s=max(0.0, end - time.monotonic()), after=after)
            if not isinstance(message, Build):
                return message

    def receive_place(self, *, deadline_s: float, after: int = 0) -> View | Stop | Build:
        end = time.monotonic() + deadline_s
        while True:
            message = self.receive(deadline_s=max(0.0, end - time.monotonic()))
            if isinstance(message, Stop | Build) or (isinstance(message, View) and message.generation > after):
                return message

    def close(self) -> None:
        self._connection.close()

    def _listen(self) -> None:
        pending = b""
        why = "the launcher has closed the control socket"
        try:
            while True:
                try:
                    data = self._connection.recv(1 << 16)
                except BlockingIOError:
                    self._launcher.look()
                    continue
                if not data:
                    break
                *lines, pending = (pending + data).split(b"\n")
                for line in lines:
                    self._deliver(TO_RANK.decode(line))
        except MessageError as error:
            why = f"protocol error: {error}"
        except (OSError, ValueError) as error:
            why = f"the control socket is closed: {error}"
        self.keys.close(why)
        with self._arrived:
            self._lost = why
            self._arrived.notify_all()

    def _deliver(self, message: ToRank) -> None:
        if isinstance(message, Keys):
            self.keys.take(message)
            return
        if isinstance(message, Changed):
            self.keys.changed(message)
            return
        if isinstance(message, Dump):
            _dump(message.path)
            return
        if isinstance(message, HandOver):
            self._on_hand_over(message)
            return
        if isinstance(message, Leave) and self._on_leave is not None:
            self.keys.end(message.generation - 1)
            self._on_leave(message)
            return
        if isinstance(message, Stop):
            self.keys.close(f"the job has ended: {message.reason}")
        with self._arrived:
            self._inbox.append(message)
            self._arrived.notify_all()


def _dump(path: str) -> None:
    with contextlib.suppress(OSError):
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
        with os.fdopen(descriptor, "w") as file:
            faulthandler.dump_traceback(file, all_threads=True)
