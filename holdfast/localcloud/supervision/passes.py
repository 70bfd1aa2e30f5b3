"""Progress of a process's threads, as a small file beside its record. Times are monotonic, shared by all processes."""

import json
import logging
import os
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

WRITE_EVERY_S = 1.0
REPORTED_FOR_S = 3600.0
"""A restart is a problem to look at for so long."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class Pass:
    name: str
    at: float
    """Of its last pass."""
    late_after_s: float
    restarts: int = 0
    why: str = ""
    """Reason of the last restart."""
    restarted_at: float = 0.0
    kind: str = "thread"
    problem: str = ""
    """Current problem, or ""."""

    def problems(self, *, now: float) -> list[str]:
        found = [self.problem] if self.problem else []
        if now - self.at > self.late_after_s:
            found.append(f"{self.kind} {self.name} is stalled: no progress for {now - self.at:.0f} s")
        since_s = now - self.restarted_at
        if self.restarts and since_s < REPORTED_FOR_S:
            times = "once" if self.restarts == 1 else f"{self.restarts} times"
            found.append(
                f"{self.kind} {self.name} failed and was restarted {times}, last {since_s:.0f} s ago: {self.why}"
            )
        return found


@dataclass(frozen=True, kw_only=True)
class ProcessPasses:
    pid: int
    at: float
    passes: tuple[Pass, ...]

    def ages(self, *, now: float) -> dict[str, float]:
        return {one.name: round(max(0.0, now - one.at), 1) for one in self.passes}


class Passes:
    """Thread that writes the progress file once a second."""

    def __init__(self, *, path: Path, reported: Callable[[], Iterable[Pass]]) -> None:
        self._path, self._reported = path, reported
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="passes", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join(5.0)

    def _run(self) -> None:
        while not self._stopping.is_set():
            try:
                self.write()
            except Exception:  # noqa: BLE001 - the next second tries again
                _log.exception("progress file not written")
            self._stopping.wait(WRITE_EVERY_S)

    def write(self) -> None:
        """Write the file; a full disk is ignored."""
        now = time.monotonic()
        content = {"pid": os.getpid(), "at": now, "passes": [asdict(one) for one in self._reported()]}
        fresh = self._path.with_suffix(".new")
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            fresh.write_text(json.dumps(content))
            fresh.replace(self._path)
        except OSError:
            return


def passes_path(home: Path, name: str) -> Path:
    return home / "run" / f"{name}.passes"


def read_passes(path: Path) -> ProcessPasses | None:
    try:
        found = json.loads(path.read_text())
        passes = tuple(Pass(**one) for one in found["passes"])
        return ProcessPasses(pid=int(found["pid"]), at=float(found["at"]), passes=passes)
    except (OSError, ValueError, KeyError, TypeError):
        return None


def json_of_passes(passes: Sequence[Pass], *, now: float) -> dict[str, object]:
    return {
        one.name: {"passed_s_ago": round(max(0.0, now - one.at), 1), "problems": one.problems(now=now)}
        for one in passes
    }
