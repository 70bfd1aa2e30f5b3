"""
Fetch of S3 files into Lustre before they are read.

Lustre has the names of linked objects at once and their contents on first read or restore. This restores batches and
waits for each, which limits requests in progress; it repeats until no new names appear, and ends after half a day.
"""

import contextlib
import fcntl
import hashlib
import itertools
import json
import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from holdfast_common import EventLog, kinds
from holdfast_lifecycle.model import StepError
from holdfast_lifecycle.node import run_program

BATCH_FILES = 256
BATCH_WAIT_S = 900.0
LONGEST_S = 12 * 3600.0
_LFS_TIMEOUT_S = 120.0


@dataclass(frozen=True)
class Order:
    folders: tuple[str, ...]
    state: str
    """Folder of the lock and of the marks of what is done."""
    events: str
    cluster: str
    node: str
    pause_s: float = 60.0
    """Between two passes over the folders. Default: 60"""

    @property
    def lock(self) -> Path:
        return Path(self.state, "lock")

    @property
    def mark(self) -> Path:
        name = hashlib.sha256("\n".join(self.folders).encode()).hexdigest()
        return Path(self.state, f"{name}.json")

    def is_running(self) -> bool:
        with contextlib.suppress(OSError), self.lock.open() as file:
            try:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                return True
        return False


@dataclass
class Progress:
    files: int = 0
    """Seen in the last pass."""
    fetched: int = 0
    late: int = 0
    """Asked for in the last pass, and not there when the wait for their batch was over."""


def fetch(
    folders: Sequence[str],
    *,
    lfs: Callable[..., str],
    pause_s: float,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> Progress:
    """Restore all files below the folders that only have names, until a pass finds nothing new."""
    progress = Progress()
    last = -1
    deadline = clock() + LONGEST_S
    while clock() < deadline:
        seen, late, before = 0, 0, progress.fetched
        for batch in _batches(path for folder in folders for path in _files(folder)):
            seen += len(batch)
            released = _released(batch, lfs)
            if released:
                lfs("hsm_restore", *released)
                missing = _wait(released, lfs=lfs, clock=clock, sleep=sleep)
                progress.fetched += len(released) - missing
                late += missing
        progress.files, progress.late = seen, late
        if progress.fetched == before and seen == last:
            break
        last = seen
        sleep(pause_s)
    return progress


def main(arguments: Sequence[str]) -> int:
    values = json.loads(arguments[0])
    order = Order(**{**values, "folders": tuple(values["folders"])})
    order.lock.parent.mkdir(parents=True, exist_ok=True)
    with order.lock.open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return 0
        # The child has the lock too, and keeps it when this process ends: who began this need not wait.
        return 0 if os.fork() else _carry_out(order)


def _carry_out(order: Order) -> int:
    events = EventLog(path=Path(order.events), source="lifecycle", cluster=order.cluster, node=order.node)
    began = time.monotonic()
    try:
        progress = fetch(order.folders, lfs=_lfs, pause_s=order.pause_s)
    except StepError as error:
        detail = {"step": "preload", "outcome": "failed"}
        events.write(kind=kinds.STEP_FAILED, evidence=error.seen, action=error.action, detail=detail)
        return 1
    reported = f"{progress.files} files, {progress.fetched} of them fetched from S3, {progress.late} still to come"
    events.write(
        kind=kinds.STEP_FINISHED,
        evidence=f"{', '.join(order.folders)}: {reported}",
        duration_s=time.monotonic() - began,
        detail={"step": "preload", "outcome": "fetched", **asdict(progress)},
    )
    order.mark.write_text(json.dumps(asdict(progress)) + "\n")
    return 0


def _lfs(*arguments: str) -> str:
    return run_program("lfs", *arguments, timeout_s=_LFS_TIMEOUT_S)


def _files(folder: str) -> Iterator[str]:
    for place, _, names in os.walk(folder):
        for name in names:
            path = os.path.join(place, name)  # noqa: PTH118  millions of them
            if not os.path.islink(path):  # noqa: PTH114
                yield path


def _batches(paths: Iterable[str]) -> Iterator[list[str]]:
    left = iter(paths)
    while batch := list(itertools.islice(left, BATCH_FILES)):
        yield batch


def _released(paths: Sequence[str], lfs: Callable[..., str]) -> list[str]:
    """Files whose contents are in S3 only: a line is ``PATH: (0x0000000d) released exists archived, archive_id:1``."""
    lines = (line.rpartition(": (") for line in lfs("hsm_state", *paths).splitlines())
    found = {path for path, _, state in lines if " released " in state}
    return [path for path in paths if path in found]


def _wait(
    paths: Sequence[str],
    *,
    lfs: Callable[..., str],
    clock: Callable[[], float],
    sleep: Callable[[float], None],
) -> int:
    deadline = clock() + BATCH_WAIT_S
    pause_s = 0.5
    while (missing := _released(paths, lfs)) and clock() < deadline:
        sleep(pause_s)
        pause_s = min(10.0, pause_s * 1.5)
    return len(missing)
