"""Thread that ships events, with retries."""

import contextlib
import fcntl
import os
import threading
import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Optional

from holdfast_agent.aws import AwsError
from holdfast_agent.shipping.passage import Passage
from holdfast_agent.shipping.state import PositionFile
from holdfast_agent.shipping.stream import LogStream

LOOK_S = 0.5
SHOWN_AFTER_S = 10.0
"""Time until CloudWatch Logs shows new events; assumed, AWS documents none."""
LONGEST_REST_S = 15.0
TURNS = Path("/run/holdfast/shipping.lock")
"""In a rehearsal, the process that runs the node also ships, while no agent does."""
JOBS_TURNS = Path("/run/holdfast/shipping-jobs.lock")
"""The same, for the log of jobs."""
JOBS_PAUSE_S = 0.5
"""A request has at most 256 KiB, so a job that writes without end costs half a MiB a second of CloudWatch Logs."""


class EventShipper:
    """
    Ships one file into one stream; ``stop`` sends the rest.

    Args:
        state: Stores the position. Of two shippers with one state, the second waits.
        look_s: Interval of polls of the file.
        longest_rest_s: Longest retry interval.
        pause_s: Between two requests while there are lines. Default: none
        turns: Lock file of shippers, if any. Default: /run/holdfast/shipping.lock
        collected: Transforms a line.
        of: Name of the content. Default: events
    """

    def __init__(
        self,
        *,
        path: Path,
        stream: LogStream,
        state: Path,
        stream_name: str,
        look_s: float = LOOK_S,
        shown_after_s: float = SHOWN_AFTER_S,
        longest_rest_s: float = LONGEST_REST_S,
        pause_s: float = 0.0,
        turns: Path = TURNS,
        collected: Callable[[str], str] = str,
        of: str = "events",
    ) -> None:
        self.name = f"shipping of {of}"
        self._stream = stream
        self._lock_path, self._turns = state.with_name(f"{state.name}.lock"), turns
        self._look_s, self._longest_rest_s, self._pause_s = look_s, longest_rest_s, pause_s
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="shipping", daemon=True)
        self._begin = partial(
            Passage,
            path=path,
            stream=stream,
            state=PositionFile(path=state, stream=stream_name),
            shown_after_s=shown_after_s,
            wait=self._stopping.wait,
            collected=collected,
        )
        self._passage: Optional[Passage] = None
        self._failures = 0
        self.problem = ""
        """Reason why lines are not shipped; else empty."""

    def start(self) -> None:
        self._thread.start()

    def stop(self, *, timeout_s: float = 5.0) -> None:
        """Send the rest, at most for ``timeout_s``; the next shipper sends what is left."""
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join(timeout_s)

    def numbers(self) -> Mapping[str, float]:
        """Thread-safe."""
        passage = self._passage
        return {
            "events_shipped_total": float(passage.shipped if passage is not None else 0),
            "events_waiting_bytes": float(passage.behind_bytes if passage is not None else 0),
            "shipping_failures_total": float(self._failures),
        }

    @property
    def skew_s(self) -> float:
        """AWS's clock minus this machine's; about 0 unless AWS refused a request for its time. Thread-safe."""
        return self._stream.now_ms() / 1000 - time.time()

    # --- the thread

    def _run(self) -> None:
        with contextlib.ExitStack() as stack:
            if not self._locked(stack) or not self._has_turn(stack):
                return
            passage = self._passage = self._begin()
            stack.callback(passage.close)
            while not self._stopping.is_set():
                has_more = self._until_done(passage.ship)
                self._stopping.wait(self._pause_s if has_more else self._look_s)
            self._tried(passage.ship)

    def _locked(self, stack: contextlib.ExitStack) -> bool:
        """Wait until this is the only shipper; False after ``stop``."""
        while not self._stopping.is_set():
            try:
                self._lock_path.parent.mkdir(parents=True, exist_ok=True)
                file = os.open(self._lock_path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            except OSError as error:
                self.problem = f"{self._lock_path}: {error}"
            else:
                try:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except OSError:
                    os.close(file)
                    self.problem = f"another agent is shipping events: it holds {self._lock_path}"
                else:
                    stack.callback(os.close, file)
                    self.problem = ""
                    return True
            self._stopping.wait(2.0)
        return False

    def _has_turn(self, stack: contextlib.ExitStack) -> bool:
        """Wait for a shipper outside the node; without one, it is the agent's turn."""
        try:
            file = os.open(self._turns, os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            return True
        stack.callback(os.close, file)
        while not _taken(file):
            self.problem = f"events are shipped from outside this node: locked: {self._turns}"
            if self._stopping.wait(0.05):
                return False
        with contextlib.suppress(OSError):
            os.utime(file)  # who looks only now and then sees that somebody was here
        self.problem = ""
        return True

    def _until_done(self, work: Callable[[], bool]) -> bool:
        """Retry ``work`` until it succeeds, or ``stop`` was called."""
        rest_s = 1.0
        while True:
            done = self._tried(work)
            if done is not None:
                return done
            if self._stopping.wait(rest_s):
                return False
            rest_s = min(rest_s * 2, self._longest_rest_s)

    def _tried(self, work: Callable[[], bool]) -> Optional[bool]:
        try:
            answer = work()
        except (AwsError, OSError) as error:
            self.problem, self._failures = str(error), self._failures + 1
            return None
        self.problem = ""
        return answer


def _taken(file: int) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True
