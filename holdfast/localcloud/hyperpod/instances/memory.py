"""Memory of the control plane beyond its process, in one small JSON file. The service wins in a conflict."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from holdfast.localcloud.home import write_private


@dataclass(kw_only=True)
class Return:
    verb: str
    """replace, reboot or update."""
    old: str
    """The instance id before."""
    since_ns: int
    """Time at which the loss was noticed or the request taken up."""


@dataclass(kw_only=True)
class ClusterMemory:
    status: str = ""
    """Last one that was announced by an event."""
    settled: list[str] = field(default_factory=list)
    """Instance ids when last in service."""
    attempts: dict[str, int] = field(default_factory=dict)
    """Private address -> replacements in a row."""
    failures: dict[str, str] = field(default_factory=dict)
    """Instance id -> reason of its failure."""
    scripts_failed: list[str] = field(default_factory=list)
    """Instance ids whose lifecycle script failed."""
    returning: dict[str, Return] = field(default_factory=dict)
    """Instance id -> its return into service."""
    rollback_message: str = ""
    judged: list[float] = field(default_factory=list)
    """Times of repairs of instances that only seemed broken, in seconds since 1970."""


class Memory:
    def __init__(self, *, path: Path) -> None:
        self._path = path
        self._lock = threading.RLock()
        self._clusters = self._load()

    def _load(self) -> dict[str, ClusterMemory]:
        try:
            stored: dict[str, dict[str, Any]] = json.loads(self._path.read_text())
            return {arn: _parse(one) for arn, one in stored.items()}
        except (FileNotFoundError, ValueError, TypeError, KeyError, AttributeError):
            return {}

    @contextmanager
    def change(self, arn: str) -> Iterator[ClusterMemory]:
        """Yield the memory of one cluster for a change, under a lock; it is on disk afterwards."""
        with self._lock:
            memory = self._clusters.setdefault(arn, ClusterMemory())
            before = asdict(memory)
            yield memory
            if asdict(memory) != before:
                self._write()

    def forget(self, *, keep: frozenset[str]) -> None:
        with self._lock:
            gone = self._clusters.keys() - keep
            for arn in gone:
                del self._clusters[arn]
            if gone:
                self._write()

    def _write(self) -> None:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        write_private(self._path, json.dumps({arn: asdict(one) for arn, one in self._clusters.items()}).encode())


def _parse(stored: dict[str, Any]) -> ClusterMemory:
    returning = {name: Return(**one) for name, one in stored.pop("returning", {}).items()}
    return ClusterMemory(**stored, returning=returning)
