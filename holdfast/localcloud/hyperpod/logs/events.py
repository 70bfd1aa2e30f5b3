"""
Events on their way to the cluster's log group.

Three files of a node are shipped: its events, those of its jobs, and provisioning.log, as the CloudWatch agent of
HyperPod's images does (SageMaker developer guide, FAQ). They are read from outside the node, so nothing is lost when it
dies. Lines of jobs are marked as theirs (`holdfast_common.of_job`). The stream's content is the position: no line is
put twice. A health agent ships its node's events itself; `turns` arbitrates.
"""

import json
import logging
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from botocore.exceptions import BotoCoreError, ClientError

from holdfast.localcloud.confined import Inside
from holdfast.localcloud.hyperpod.logs.shipping import MAX_LINE_BYTES, Line, LogShipper, now_ms
from holdfast.localcloud.hyperpod.logs.turns import Lock, Turn
from holdfast.localcloud.hyperpod.model import Cluster
from holdfast.localcloud.supervision import Complaints, Worker
from holdfast_common import Event, events_log_group, of_job, stream_of_jobs

OWN_STREAM = "control-plane"
TAIL_S = 0.25
PROVISIONING_LOG_S = 3.0
"""As the CloudWatch agent of HyperPod's images is set (force_flush_interval, same FAQ)."""
CHUNK_BYTES = 1 << 20
LAST_CHUNKS = 64
"""Of a node that is gone; what lies beyond is lost with its disk."""
MOST_WAITING_LINES = 20_000
LAST_REQUEST_S = 0.3
"""For a request that the agent of a node had sent when the node was lost."""
MOST_LOG_BYTES = 4 << 20
"""Of a provisioning.log; the embedded AWS keeps all logs in memory."""

OLDEST_MS, NEWEST_MS = 14 * 24 * 3_600_000, 2 * 3_600_000

_log = logging.getLogger(__name__)


class EventSink:
    def __init__(self, *, shipper: LogShipper) -> None:
        self._shipper = shipper

    def emit(
        self,
        kind: str,
        *,
        cluster: str,
        node: str = "",
        fault: str = "",
        evidence: str = "",
        action: str = "",
        duration_s: float | None = None,
        detail: Mapping[str, str | int | float | bool] | None = None,
    ) -> None:
        event = Event(
            time_ns=time.time_ns(),
            source="control-plane",
            kind=kind,
            cluster=cluster,
            node=node,
            fault=fault,
            evidence=evidence,
            action=action,
            duration_s=None if duration_s is None else round(duration_s, 3),
            detail=dict(detail or {}),
        )
        line = event.to_json()
        _log.info("%s", line)
        lines = [(event.time_ns // 1_000_000, line)]
        self._shipper.put(group=events_log_group(cluster), stream=OWN_STREAM, lines=lines)

    def note(self, *, group: str, stream: str, lines: list[str]) -> None:
        self._shipper.put(group=group, stream=stream, lines=[(now_ms(), line) for line in lines])


@dataclass(kw_only=True)
class FileTail:
    path: Path | Inside
    group: str
    stream: str
    is_events: bool = True
    """Lines carry their own time. Default: True"""
    most_bytes: int | None = None
    """The rest is not shipped, and a last line reports that. None: all is."""
    every_s: float = 0.0
    """Between two looks. Default: as often as there are looks."""
    next_at: float = 0.0
    to_skip: int | None = None
    """Lines that are in the stream already. None: unknown."""
    offset: int = 0
    seen: int = 0
    """Bytes of the file when all of it was in the stream."""
    torn: bytes = field(default=b"")
    is_cut_off: bool = False
    turn: Turn = field(default_factory=lambda: Turn(lock=None))
    """Arbitration with other shippers. Default: there are none."""
    collected: Callable[[str], str] = str
    """A line as it is put. Default: as it is."""

    @property
    def about(self) -> str:
        return f"{self.group} {self.stream}"

    def read(self) -> list[str]:
        most = CHUNK_BYTES if self.most_bytes is None else min(CHUNK_BYTES, self.most_bytes - self.offset)
        try:
            with self.path.open("rb") as file:
                file.seek(self.offset)
                data = file.read(max(most, 1))
        except OSError:  # none yet; or a link out of the node, a pipe: nothing that could be shipped
            return []
        if most <= 0:
            return self._cut_off() if data else []
        self.offset += len(data)
        *lines, self.torn = (self.torn + data).split(b"\n")
        if self.is_events:
            self.torn = self.torn[:MAX_LINE_BYTES]  # however long, a line is one event: the agent counts so, too
        elif len(self.torn) > CHUNK_BYTES:
            lines, self.torn = [*lines, self.torn], b""
        return [text for line in lines if (text := line.decode(errors="replace")).strip()]

    def start_fresh(self) -> None:
        """Forget the position: another process may have shipped meanwhile."""
        self.to_skip, self.offset, self.torn = None, 0, b""

    def size(self) -> int:
        try:
            return self.path.stat().st_size
        except OSError:
            return 0

    def _cut_off(self) -> list[str]:
        if self.is_cut_off:
            return []
        self.is_cut_off, self.torn = True, b""
        return [f"[holdfast] log cut at {self.most_bytes} bytes; the rest is on the node only"]


class Tailer:
    """Thread that ships new lines of every node's files."""

    def __init__(self, *, shipper: LogShipper) -> None:
        self._shipper = shipper
        self._lock = threading.Lock()
        self._tails: dict[str, tuple[FileTail, ...]] = {}
        self._stopping = threading.Event()
        self._complaints = Complaints(log=_log, what="log files of nodes", again_after_s=1.0)
        self.worker = Worker(
            name="tail", work=self._run, stopping=self._stopping, problem=lambda: self._complaints.summary
        )

    def start(self) -> None:
        self.worker.start()

    def stop(self) -> None:
        self._stopping.set()
        self.worker.join(5.0)
        self._poll()

    def follow(
        self,
        *,
        instance_id: str,
        cluster: Cluster,
        group: str,
        events: Inside,
        job_events: Inside,
        provisioning_log: Inside,
        lock: Lock | None = None,
        jobs_lock: Lock | None = None,
        is_new: bool = False,
    ) -> None:
        """
        Ship these files of an instance from now on; no-op if followed.

        Args:
            lock: Of the node, shared with its agent. Default: there is no agent.
            jobs_lock: The same, for the events of its jobs.
            is_new: Nothing was ever shipped. Default: its streams are read.
        """
        to_skip = 0 if is_new else None
        with self._lock:
            if instance_id in self._tails and self._tails[instance_id][0].path == events:
                for tail, renewed in zip(self._tails[instance_id], (lock, jobs_lock), strict=False):
                    tail.turn.renew(renewed)
                return
            self._tails[instance_id] = (
                FileTail(
                    path=events,
                    group=events_log_group(cluster.name),
                    stream=instance_id,
                    to_skip=to_skip,
                    turn=Turn(lock=lock),
                ),
                FileTail(
                    path=job_events,
                    group=events_log_group(cluster.name),
                    stream=stream_of_jobs(instance_id),
                    to_skip=to_skip,
                    turn=Turn(lock=jobs_lock),
                    collected=lambda line: of_job(line, cluster=cluster.name, node=instance_id, now_ns=time.time_ns()),
                ),
                FileTail(
                    path=provisioning_log,
                    group=f"/aws/sagemaker/Clusters/{cluster.name}/{cluster.cluster_id}",
                    stream=f"LifecycleConfig/{group}/{instance_id}",
                    is_events=False,
                    most_bytes=MOST_LOG_BYTES,
                    every_s=PROVISIONING_LOG_S,
                    next_at=time.monotonic() + PROVISIONING_LOG_S,
                    to_skip=to_skip,
                ),
            )

    def finish(self, *, instance_id: str) -> None:
        with self._lock:
            for tail in self._tails.pop(instance_id, ()):
                if tail.turn.lock is not None and not tail.turn.held and tail.size() != tail.seen:
                    tail.start_fresh()
                    time.sleep(LAST_REQUEST_S if tail.turn.is_shared else 0.0)
                tail.turn.lock = None
                for _ in range(LAST_CHUNKS):
                    if not self._try(tail):
                        break
                tail.turn.close()
                self._complaints.settled(tail.about)

    def _run(self) -> None:
        while not self._stopping.wait(TAIL_S):
            self._poll()
            self.worker.passed()

    def _poll(self) -> None:
        with self._lock:
            now = time.monotonic()
            for tails in self._tails.values():
                for tail in tails:
                    if tail.next_at <= now:
                        before = tail.offset
                        self._try(tail)
                        is_behind = tail.offset - before == CHUNK_BYTES
                        tail.next_at = now if is_behind else now + tail.every_s

    def _try(self, tail: FileTail) -> bool:
        return self._complaints.attempt(tail.about, lambda: self._ship(tail), failures=(Exception,))

    def _ship(self, tail: FileTail) -> bool:
        waiting = self._shipper.waiting(group=tail.group, stream=tail.stream)
        if waiting > MOST_WAITING_LINES:
            return False
        if waiting == 0 and tail.turn.held and (tail.offset >= tail.size() or not tail.turn.is_shared):
            tail.seen = tail.offset
            tail.turn.end()
        was_held = tail.turn.held
        if tail.turn.lock is not None and not was_held and tail.size() == tail.seen:
            return False
        if not tail.turn.begin():
            return False
        if tail.turn.is_shared and tail.turn.held and not was_held:
            tail.start_fresh()
        if tail.to_skip is None:
            if not tail.path.exists():
                return False
            try:
                tail.to_skip = self._shipper.count(group=tail.group, stream=tail.stream)
            except (ClientError, BotoCoreError) as error:
                _log.warning("log lines of %s: delayed: %s", tail.stream, error)
                return False
        before = tail.offset
        lines = tail.read()
        skipped = min(tail.to_skip, len(lines))
        tail.to_skip -= skipped
        if lines[skipped:]:
            read = [tail.collected(line) for line in lines[skipped:]]
            stamped = [stamp(line, otherwise=now_ms) if tail.is_events else (now_ms(), line) for line in read]
            self._shipper.put(group=tail.group, stream=tail.stream, lines=stamped)
        return tail.offset > before


def stamp(line: str, *, otherwise: Callable[[], int]) -> Line:
    """
    Return an event line with its own time; ``otherwise`` without one that CloudWatch Logs takes.

    PutLogEvents takes nothing "more than 2 hours in the future" or "older than 14 days" (API reference). Any user of a
    node may write such a line.
    """
    now_ms = otherwise()
    try:
        time_ms = int(json.loads(line)["time_ns"]) // 1_000_000
    except (ValueError, TypeError, KeyError, OverflowError, RecursionError):
        return now_ms, line
    return (time_ms if now_ms - OLDEST_MS < time_ms < now_ms + NEWEST_MS else now_ms), line
