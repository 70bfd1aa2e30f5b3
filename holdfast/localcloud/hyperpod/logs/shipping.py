"""Shipping to CloudWatch Logs: lines from any thread, batched per stream, in order, with retries."""

import logging
import threading
import time
from collections import deque
from collections.abc import Iterable
from typing import Any

from botocore.exceptions import ClientError, ParamValidationError

from holdfast.localcloud.supervision import Complaints, Worker
from holdfast_common import events_counted

FLUSH_S = 0.3
BREATHER = 9.0
LONGEST_REST_S = 2.0
"""Shipping rests ``BREATHER`` times as long as it took, so that many nodes that boot come first, but no longer."""
RETRY_S = 1.0
MAX_BATCH_LINES = 1000
MAX_BATCH_BYTES = 900_000
MAX_LINE_BYTES = 200_000
MAX_WAITING_LINES = 50_000
STAND_IN = "[holdfast] CloudWatch Logs rejected a line"
REFUSED = ("InvalidParameterException", "ValidationException", "SerializationException")
"""Errors of the lines themselves: no retry."""
OWN_GROUPS = "/aws/sagemaker/Clusters/"

_log = logging.getLogger(__name__)

Line = tuple[int, str]
"""Milliseconds since 1970, text."""
Stream = tuple[str, str]
"""Group, stream."""


class LogShipper:
    """Thread that puts lines; ``stop`` flushes."""

    def __init__(self, *, logs: Any) -> None:
        self._logs = logs
        self._lock = threading.Lock()
        self._waiting: dict[Stream, deque[Line]] = {}
        self._retry_at: dict[Stream, float] = {}
        self._known: set[Stream] = set()
        self._stopping = threading.Event()
        self._complaints = Complaints(log=_log, what="CloudWatch Logs")
        self.worker = Worker(
            name="logs", work=self._run, stopping=self._stopping, problem=lambda: self._complaints.summary
        )

    def start(self) -> None:
        self.worker.start()

    def stop(self, *, timeout_s: float = 5.0) -> None:
        """Put pending lines for at most ``timeout_s``, then drop them."""
        self._stopping.set()
        self.worker.join(timeout_s)

    def put(self, *, group: str, stream: str, lines: Iterable[Line]) -> None:
        """Queue lines. Order within a stream is kept."""
        with self._lock:
            waiting = self._waiting.setdefault((group, stream), deque())
            waiting.extend(lines)
            excess = len(waiting) - MAX_WAITING_LINES
            for _ in range(excess):
                waiting.popleft()
        if excess > 0:
            _log.warning("log group %s: not accepting lines: dropped the oldest %d", group, excess)

    def waiting(self, *, group: str, stream: str) -> int:
        with self._lock:
            return len(self._waiting.get((group, stream), ()))

    def count(self, *, group: str, stream: str) -> int:
        """Return the number of events of the stream; 0 if it or its group does not exist."""
        arguments = {"logGroupName": group, "logStreamName": stream, "startFromHead": True}
        counted, token = 0, ""
        while True:
            try:
                answer = self._logs.get_log_events(**arguments, **({"nextToken": token} if token else {}))
            except ClientError as error:
                if _code(error) == "ResourceNotFoundException":
                    return 0
                raise
            counted += sum(events_counted(one["message"]) for one in answer["events"])
            if answer["nextForwardToken"] == token or not answer["events"]:
                return counted
            token = answer["nextForwardToken"]

    def _run(self) -> None:
        pause_s = FLUSH_S
        while not self._stopping.wait(pause_s):
            began = time.monotonic()
            self._flush()
            self.worker.passed()
            pause_s = min(LONGEST_REST_S, max(FLUSH_S, BREATHER * (time.monotonic() - began)))
        self._retry_at.clear()
        self._flush()

    def _flush(self) -> None:
        now = time.monotonic()
        with self._lock:
            due = [name for name, lines in self._waiting.items() if lines and self._retry_at.get(name, 0.0) <= now]
        for name in due:
            try:
                while self._put_some(name):
                    continue
                self._retry_at.pop(name, None)
                self._complaints.settled(" ".join(name))
            except Exception as error:  # noqa: BLE001 - one stream that is not taken must not keep others waiting
                self._complaints.record(" ".join(name), f"{error}; retrying until accepted")
                self._retry_at[name] = time.monotonic() + RETRY_S

    def _put_some(self, name: Stream) -> bool:
        batch = self._next_batch(name)
        if not batch:
            return False
        self._ensure(name)
        self._put(name, sorted(batch, key=lambda line: line[0]))
        with self._lock:
            for _ in batch:
                self._waiting[name].popleft()
        return True

    def _put(self, name: Stream, lines: list[Line]) -> None:
        """Put lines; halve rejected batches until single lines are dropped."""
        events = [{"timestamp": time_ms, "message": text} for time_ms, text in lines]
        try:
            self._logs.put_log_events(logGroupName=name[0], logStreamName=name[1], logEvents=events)
        except (ClientError, ParamValidationError) as error:
            if isinstance(error, ClientError) and _code(error) not in REFUSED:
                raise
            if len(lines) == 1:
                _log.warning("log group %s, stream %s: line rejected: %s", *name, error)
                if not lines[0][1].startswith(STAND_IN):
                    # One event for each line: how far a file was shipped is told by their number.
                    self._put(name, [(now_ms(), f"{STAND_IN}: {error}"[:300])])
                return
            half = len(lines) // 2
            self._put(name, lines[:half])
            self._put(name, lines[half:])

    def _next_batch(self, name: Stream) -> list[Line]:
        batch: list[Line] = []
        size = 0
        with self._lock:
            for time_ms, text in self._waiting[name]:
                kept = text if len(text) <= MAX_LINE_BYTES else text[:MAX_LINE_BYTES]
                size += len(kept.encode()) + 26
                if batch and (size > MAX_BATCH_BYTES or len(batch) == MAX_BATCH_LINES):
                    break
                batch.append((time_ms, kept or " "))
        return batch

    def _ensure(self, name: Stream) -> None:
        if name in self._known:
            return
        group, stream = name
        try:
            self._create_stream(group, stream)
        except ClientError as error:
            if _code(error) != "ResourceNotFoundException" or not group.startswith(OWN_GROUPS):
                raise
            self._ignore_existing(self._logs.create_log_group, logGroupName=group)
            self._create_stream(group, stream)
        self._known.add(name)

    def _create_stream(self, group: str, stream: str) -> None:
        self._ignore_existing(self._logs.create_log_stream, logGroupName=group, logStreamName=stream)

    @staticmethod
    def _ignore_existing(call: Any, **arguments: str) -> None:
        try:
            call(**arguments)
        except ClientError as error:
            if _code(error) != "ResourceAlreadyExistsException":
                raise


def now_ms() -> int:
    return time.time_ns() // 1_000_000


def _code(error: ClientError) -> str:
    return str(error.response["Error"]["Code"])
