"""
Persistence of the embedded AWS: snapshots after changes, restored at the next start.

One file per service under ``<home>/aws/state``, replaced atomically, at most every 0.3 s. Its first line names the
versions that wrote it; format, moto and Python must match, since snapshots hold their objects and code. If one file is
rejected, the whole directory is moved aside with its file systems. Files that others can write are not unpickled.
"""

import json
import logging
import pickle
import platform
import threading
import time
import zlib
from collections.abc import Callable, Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any, Protocol

import moto

from holdfast.localcloud.aws.state.disk_space import DiskSpace
from holdfast.localcloud.aws.state.gate import Gate
from holdfast.localcloud.aws.state.pickling import Bodies, dump_backends, forget, load_backends
from holdfast.localcloud.home import private_bytes, set_aside, write_private
from holdfast.localcloud.supervision import Worker

log = logging.getLogger(__name__)

FORMAT = 3
"""Raised when the state of own services changes incompatibly."""
COMPARED = ("format", "moto", "python")
NAMED = ("holdfast", "moto", "python")
DEBOUNCE_S = 0.2
REST_FACTOR = 3  # rest this many times as long as the last snapshot took
LONGEST_REST_S = 2.0
RETRY_S = 2.0
IDLE_S = 5.0
LATE_AFTER_S = 60.0
CLOSE_TIMEOUT_S = 60.0
GATE_TIMEOUT_S = 2.0
MOTO = "moto-"
OURS = "own-"


class PersistentService(Protocol):
    def state(self) -> Any: ...

    def restore(self, state: Any) -> None: ...

    def reset(self) -> None: ...


class Persistence:
    """Snapshots of moto's services, named by `changed`, and of ours."""

    def __init__(self, *, home: Path, gate: Gate, services: Mapping[str, PersistentService]) -> None:
        self._problems: dict[str, str] = {}
        self._home = home
        self._folder = home / "aws" / "state"
        self._gate = gate
        self._services = services
        self._bodies = Bodies(self._folder / "bodies")
        self._condition = threading.Condition()
        self._dirty: set[str] = set()
        self._known: set[str] = set()
        self._closing = False
        self._writing = False
        self._stopping = threading.Event()
        self.worker = Worker(name="snapshots", work=self._run, stopping=self._stopping, late_after_s=LATE_AFTER_S)
        self.room = DiskSpace(folder=home)

    @property
    def problem(self) -> str:
        return "; ".join(self._problems.values())

    @property
    def unsaved(self) -> bool:
        """Return True if a crash now would lose a change."""
        with self._condition:
            return bool(self._dirty) or self._writing

    def restore(self) -> list[str]:
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        paths = sorted(self._folder.glob("*.snapshot"))
        try:
            loaded = {path.stem: _read(path) for path in paths}
        except _UnusableError as error:
            self._set_aside(str(error), written_by=error.written_by)
            return []
        try:
            for name, data in loaded.items():
                if name.startswith(MOTO):
                    load_backends(name.removeprefix(MOTO), data, self._bodies)
            for name, data in loaded.items():
                if name.startswith(OURS) and name.removeprefix(OURS) in self._services:
                    self._services[name.removeprefix(OURS)].restore(pickle.loads(data))  # noqa: S301 - a private file of this user
        except Exception as error:
            log.exception("a snapshot cannot be restored")
            forget()
            for service in self._services.values():
                service.reset()
            self._set_aside(f"{type(error).__name__}: {error}", written_by="the version that wrote it")
            return []
        self._bodies.sweep()
        self._known = set(loaded)
        return sorted(loaded)

    def refusal(self, *, desired: int) -> str:
        """Return why a change of ``desired`` bytes cannot be saved, or ""."""
        with self._condition:
            failed = self._problems.get("", "")
        return failed or self.room.refusal(desired=desired)

    def start(self) -> None:
        self.worker.start()

    def changed(self, name: str, *, ours: bool) -> None:
        with self._condition:
            self._dirty.add((OURS if ours else MOTO) + name)
            self._known.add((OURS if ours else MOTO) + name)
            self._condition.notify_all()

    def close(self) -> None:
        """Stop, with a last snapshot of everything that ever changed."""
        self._stopping.set()
        with self._condition:
            self._closing = True
            self._condition.notify_all()
        self.worker.join(CLOSE_TIMEOUT_S)
        self.snapshot(set(self._known))

    def snapshot(self, names: set[str]) -> set[str]:
        """Write these services' state now; return the names to retry."""
        dumps: dict[str, bytes] = {}
        failed: set[str] = set()
        with self._gate.exclusive(timeout_s=GATE_TIMEOUT_S) as alone:
            if not alone:
                return names
            self._bodies.begin()
            for name in sorted(name for name in names if name.startswith(MOTO)):
                self._attempt(name, failed, lambda key: dump_backends(key.removeprefix(MOTO), self._bodies), dumps)
        for name in sorted(name for name in names if name.startswith(OURS)):
            self._attempt(name, failed, lambda key: pickle.dumps(self._services[key.removeprefix(OURS)].state()), dumps)
        try:
            self._write(dumps)
        except OSError as error:
            self._complain("", f"the state of the embedded AWS cannot be saved: {error}")
            return names - failed
        for name in ("", *dumps):
            if self._problems.pop(name, None):
                log.info("the state of %s is saved again", name.partition("-")[2] or "the embedded AWS")
        return set()

    def _write(self, dumps: Mapping[str, bytes]) -> None:
        if "moto-s3" in dumps:
            self._bodies.write()
        for name, data in dumps.items():
            header = json.dumps({**_versions(), "length": len(data), "crc32": zlib.crc32(data)}).encode()
            write_private(self._folder / f"{name}.snapshot", header + b"\n" + data)
        if "moto-s3" in dumps:
            self._bodies.finish()

    def _attempt(self, name: str, failed: set[str], dump: Callable[[str], bytes], dumps: dict[str, bytes]) -> None:
        try:
            dumps[name] = dump(name)
        except Exception as error:  # noqa: BLE001 - one service that cannot be kept must not keep others from it
            failed.add(name)
            kind = f"{type(error).__name__}: {error}"
            self._complain(name, f"the state of {name.partition('-')[2]} cannot be saved: {kind}")

    def _run(self) -> None:
        while True:
            with self._condition:
                self._condition.wait_for(lambda: self._dirty or self._closing, timeout=IDLE_S)
                self.worker.passed()
                if self._closing:
                    return
                if not self._dirty:
                    continue
            time.sleep(DEBOUNCE_S)
            with self._condition:
                names, self._dirty = self._dirty, set()
                self._writing = True
            started = time.monotonic()
            again = names
            try:
                again = self.snapshot(names)
            except Exception as error:
                log.exception("a snapshot failed")
                self._complain("", f"the state of the embedded AWS cannot be saved: {type(error).__name__}: {error}")
            took = time.monotonic() - started
            with self._condition:
                self._dirty |= again
                self._writing = False
                rest = RETRY_S if again else min(LONGEST_REST_S, took * REST_FACTOR) - DEBOUNCE_S
                if rest > 0:
                    self._condition.wait_for(lambda: self._closing, timeout=rest)

    def _complain(self, name: str, problem: str) -> None:
        if problem != self._problems.get(name):
            log.error("%s", problem)
        self._problems[name] = problem

    def _set_aside(self, reason: str, *, written_by: str) -> None:
        target = set_aside(self._home)
        log.warning(
            "state of the embedded AWS rejected: %s; moved to %s; its file systems in %s are kept until that folder "
            "is removed%s",
            reason,
            target,
            self._home / "fsx",
            f"; to go back: stop the processes listed in {self._home / 'run'}, move the folder back to {self._folder} "
            f"and start the local cloud with {written_by}"
            if written_by
            else "",
        )


class _UnusableError(Exception):
    """A snapshot file that must not be loaded, and the versions that can; "" if none can."""

    def __init__(self, reason: str, *, written_by: str = "") -> None:
        super().__init__(reason)
        self.written_by = written_by


def _versions() -> dict[str, Any]:
    return {
        "format": FORMAT,
        "holdfast": version("holdfast-hyperpod"),
        "moto": moto.__version__,
        "python": platform.python_version(),
    }


def _read(path: Path) -> bytes:
    try:
        header, _, data = private_bytes(path).partition(b"\n")
    except PermissionError as error:  # what others can write is not unpickled
        raise _UnusableError(str(error)) from None
    try:
        found = json.loads(header)
    except ValueError:
        raise _UnusableError(f"{path.name} is damaged") from None
    for key, mine in _versions().items():
        if key in COMPARED and found.get(key) != mine:
            reason = f"{path.name}: got {key} {found.get(key)}; allowed: {key} {mine}"
            raise _UnusableError(reason, written_by=", ".join(f"{one} {found.get(one)}" for one in NAMED))
    if (found.get("length"), found.get("crc32")) != (len(data), zlib.crc32(data)):
        raise _UnusableError(f"{path.name} is damaged")
    return data
