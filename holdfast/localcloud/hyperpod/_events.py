"""
Events on their way to the cluster's log group: the control plane's own, and those in the event files of nodes.

A node's file is read from outside the node, so what a node wrote before it died is not lost. How far a file was
shipped is what its stream holds already: nothing has to be remembered, and no line is put twice.
"""

import json
import logging
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from botocore.exceptions import BotoCoreError, ClientError

from holdfast.localcloud.hyperpod._logs import Line, LogShipper, now_ms
from holdfast_common import Event, events_log_group

OWN_STREAM = "control-plane"
TAIL_S = 0.15

_log = logging.getLogger(__name__)


class EventSink:
    """Writes the control plane's events."""

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


@dataclass(kw_only=True)
class Tail:
    """One node's event file."""

    path: Path
    group: str
    stream: str
    to_skip: int | None = None
    """Lines that the stream has already. None: not asked yet."""
    offset: int = 0
    torn: bytes = field(default=b"")

    def read(self) -> list[str]:
        """Complete lines that were not read before."""
        try:
            with self.path.open("rb") as file:
                file.seek(self.offset)
                data = file.read()
        except (FileNotFoundError, NotADirectoryError):
            return []
        self.offset += len(data)
        *lines, self.torn = (self.torn + data).split(b"\n")
        return [line.decode(errors="replace") for line in lines if line.strip()]


class Tailer:
    """One thread that reads every node's event file and ships what is new."""

    def __init__(self, *, shipper: LogShipper) -> None:
        self._shipper = shipper
        self._lock = threading.Lock()
        self._tails: dict[str, Tail] = {}
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="tail", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stopping.set()
        self._thread.join(5.0)
        self._poll()

    def follow(self, *, instance_id: str, cluster: str, path: Path) -> None:
        """Ship this file from now on; a no-op for one that is followed."""
        with self._lock:
            if instance_id not in self._tails or self._tails[instance_id].path != path:
                self._tails[instance_id] = Tail(path=path, group=events_log_group(cluster), stream=instance_id)

    def finish(self, *, instance_id: str) -> None:
        """Ship the rest of a file whose node is gone, and let go of it."""
        with self._lock:
            tail = self._tails.pop(instance_id, None)
            if tail:
                self._ship(tail)

    def _run(self) -> None:
        while not self._stopping.wait(TAIL_S):
            self._poll()

    def _poll(self) -> None:
        with self._lock:
            for tail in self._tails.values():
                self._ship(tail)

    def _ship(self, tail: Tail) -> None:
        if tail.to_skip is None:
            if not tail.path.exists():
                return
            try:
                tail.to_skip = self._shipper.count(group=tail.group, stream=tail.stream)
            except (ClientError, BotoCoreError) as error:
                _log.warning("events of %s wait: %s", tail.stream, error)
                return
        lines = tail.read()
        skipped = min(tail.to_skip, len(lines))
        tail.to_skip -= skipped
        if lines[skipped:]:
            stamped = [stamp(line, otherwise=now_ms) for line in lines[skipped:]]
            self._shipper.put(group=tail.group, stream=tail.stream, lines=stamped)


def stamp(line: str, *, otherwise: Callable[[], int]) -> Line:
    """An event line with its own time; ``otherwise`` for one that has none."""
    try:
        return int(json.loads(line)["time_ns"]) // 1_000_000, line
    except (ValueError, TypeError, KeyError):
        return otherwise(), line
