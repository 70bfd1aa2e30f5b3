"""
File system probe: open, write, sync and unlink a file, in a child process per mount point.

``statfs`` and ``stat`` are not enough: they succeed on a mount whose opens hang, and the kernel shows an ext4 that
shut itself down as ``rw``.
"""

import errno
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Optional

from holdfast_agent.children import Child, Phase
from holdfast_agent.detectors.detector import Detector, Facts, Instant, Seen
from holdfast_agent.signals import Signal

TABLE_EVERY_S = 10.0
SLOW_PHASES = ("write", "sync")
SLOW_DEADLINE_S = 30.0
"""Writing and syncing wait for others' data under load; opening does not."""
_NO_FAULT = (errno.ENOSPC, errno.EDQUOT)
_NOT_ALLOWED = (errno.EACCES, errno.EPERM)
_PAGE = b"holdfast" * 512


@dataclass(frozen=True)
class Mount:
    """Row of /proc/self/mountinfo."""

    point: str
    device: str
    kind: str
    options: "tuple[str, ...]"


def mounts(text: str) -> "dict[str, Mount]":
    """Visible mounts by mount point: a later one hides those below it."""
    found = {}
    for line in text.splitlines():
        fields, _, rest = line.partition(" - ")
        before, after = fields.split(" "), rest.split(" ")
        if len(before) < 6 or len(after) < 3:
            continue
        point = before[4].encode("latin-1", "replace").decode("unicode_escape") if "\\" in before[4] else before[4]
        options = (*before[5].split(","), *after[2].split(","))
        found[point] = Mount(point=point, device=before[2], kind=after[0], options=options)
    return found


def kind_at(point: str, table: "Mapping[str, Mount]") -> str:
    above = [one for one in table if one == point or one == "/" or point.startswith(f"{one}/")]
    return table[max(above, key=len)].kind if above else ""


def probe(question: Any, phase: Phase) -> "dict[str, Any]":
    """Runs in the child: return the errno and phase of a failure, or None, and the free space."""
    path = f"{question['folder']}/.holdfast-probe-{question['node']}"
    at = "open"

    def enter(name: str) -> None:
        nonlocal at
        at = name
        phase(name)

    answer: dict[str, Any] = {"errno": None}
    try:
        enter("open")
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            enter("write")
            os.write(descriptor, _PAGE)
            enter("sync")
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
            enter("unlink")
            Path(path).unlink()
    except OSError as problem:
        answer = {"errno": problem.errno, "phase": at}
        if problem.errno in _NOT_ALLOWED:
            answer = _listed(question["folder"], phase)
    enter("space")
    try:
        room = os.statvfs(question["folder"])
        answer["free_bytes"], answer["bytes"] = room.f_bavail * room.f_frsize, room.f_blocks * room.f_frsize
    except OSError:
        pass
    return answer


def _listed(folder: str, phase: Phase) -> "dict[str, Any]":
    phase("list")
    try:
        with os.scandir(folder) as entries:
            next(entries, None)
    except OSError as problem:
        return {"errno": problem.errno, "phase": "list"}
    return {"errno": None, "read": True}


@dataclass(frozen=True)
class Conditions:
    stalled: str
    read_only: str
    failed: str
    full: str = ""


@dataclass
class _Watched:
    folder: str
    child: Child
    kind: str = ""
    emergency: bool = False
    due_s: float = float("-inf")
    writable: bool = False
    errors: int = 0
    state: Optional[str] = None
    """Reason why it cannot be probed; "" where the last probe ended, None: none has yet."""
    stuck: "tuple[Signal, ...]" = ()
    found: "tuple[Signal, ...]" = ()


class Probing(Detector):
    """Watches ``paths``, or the mount points of this kind; ``node`` makes the probe file's name unique."""

    interval_s = 3.0
    deadline_s: Optional[float] = 6.0
    means: Conditions
    well_known: "tuple[str, ...]" = ()
    """Mount points whose unmounting is reported; others are optional."""

    def __init__(
        self, *, paths: Optional[Sequence[str]] = None, node: str, mountinfo: str = "/proc/self/mountinfo"
    ) -> None:
        super().__init__()
        self._paths = paths
        self._node = node or "node"
        self._mountinfo = mountinfo
        self._watched: dict[str, _Watched] = {}
        self._table: Mapping[str, Mount] = {}
        self._table_problem = ""
        self._table_s = float("-inf")
        self._memory: Mapping[str, Any] = {}

    def chosen(self, table: "Mapping[str, Mount]") -> "dict[str, str]":
        """Default mount points, each with the folder to write in."""
        raise NotImplementedError

    def descriptors(self) -> "tuple[int, ...]":
        return tuple(one for watched in self._watched.values() for one in watched.child.descriptors())

    def due_in_s(self, at: Instant) -> float:
        next_s = TABLE_EVERY_S
        for watched in self._watched.values():
            next_s = min(next_s, self._left_s(watched) if watched.child.waiting else watched.due_s - at.boot_s)
        return max(next_s, 0.0)

    def look(self, at: Instant) -> "tuple[Seen, ...]":
        if at.boot_s - self._table_s >= TABLE_EVERY_S:
            self._table_s = at.boot_s
            self._read_table(at)
        if not self._watched:
            reported = (*self.holding(at, ()), *self.unsupported("no file system of this kind is mounted"))
            self._report_parts()
            return reported
        self.supported()
        found: list[Signal] = []
        for point, watched in self._watched.items():
            self._turn(at, point, watched)
            found += [*watched.stuck, *watched.found]
        self.hung = sum(1 for watched in self._watched.values() if watched.stuck and watched.child.waiting)
        self._report_parts()
        return self.holding(at, tuple(found))

    def remember(self) -> "dict[str, Any]":
        return {
            **super().remember(),
            "writable": [point for point, watched in self._watched.items() if watched.writable],
            "stuck": {point: kept for point, one in self._watched.items() if (kept := one.child.remember())},
        }

    def restore(self, memory: "Mapping[str, Any]") -> None:
        super().restore(memory)
        self._memory = memory

    def asking(self) -> bool:
        return any(watched.child.waiting for watched in self._watched.values())

    def processes(self) -> "tuple[int, ...]":
        return tuple(watched.child.pid for watched in self._watched.values())

    def close(self) -> None:
        for watched in self._watched.values():
            watched.child.close()

    def _report_parts(self) -> None:
        """Report the mount table and each mount point; a path that was never mounted is never lost."""
        expected = self.well_known if self._paths is None else self._paths
        missed = [point for point in expected if point not in self._table]
        self.parts = {
            "": self._table_problem,
            **{point: watched.state for point, watched in self._watched.items()},
            **{point: f"{point} is not mounted" for point in missed},
        }

    def _read_table(self, at: Instant) -> None:
        try:
            table = mounts(Path(self._mountinfo).read_text("utf-8", "replace"))
        except OSError as problem:
            self.reason = self._table_problem = f"{self._mountinfo}: {problem.strerror}"
            return
        self._table, self._table_problem = table, ""
        expected = self.chosen(table) if self._paths is None else {path: path for path in self._paths}
        for point, folder in expected.items():
            if point not in self._watched:
                self._watched[point] = self._begin(at, point, folder)
            self._watched[point].kind = kind_at(point, table)
            self._watched[point].emergency = point in table and "emergency_ro" in table[point].options
        for point in [point for point in self._watched if point not in expected]:
            if not self._watched[point].child.waiting:
                self._watched.pop(point).child.close()
                self._forget_numbers(point)

    def _begin(self, at: Instant, point: str, folder: str) -> _Watched:
        assert self.deadline_s is not None
        watched = _Watched(folder=folder, child=Child(serve=probe, kill_after_s=120.0))
        watched.writable = point in self._memory.get("writable", ())
        watched.child.adopt(list(self._memory.get("stuck", {}).get(point, [])), at.boot_s)
        return watched

    def _forget_numbers(self, point: str) -> None:
        self.numbers = {key: value for key, value in self.numbers.items() if ("mountpoint", point) not in key[1]}

    def _left_s(self, watched: _Watched) -> float:
        return min(max(self._deadline_s(watched) - watched.child.waited_s, 0.0) + 0.01, 1.0)

    def _deadline_s(self, watched: _Watched) -> float:
        assert self.deadline_s is not None
        return SLOW_DEADLINE_S if watched.child.phase in SLOW_PHASES else self.deadline_s

    def _turn(self, at: Instant, point: str, watched: _Watched) -> None:
        answer = watched.child.poll(at.boot_s)
        if answer is not None:
            watched.state = answer.error
        if answer is not None and not answer.error:
            watched.stuck = ()
            watched.found = self._judge(at, point, watched, answer.value)
        if watched.child.waiting:
            if watched.child.waited_s > self._deadline_s(watched):
                watched.stuck = (self._stalled(at, point, watched),)
        elif at.boot_s >= watched.due_s:
            watched.due_s = at.boot_s + self.interval_s
            watched.child.ask({"folder": watched.folder, "node": self._node}, at.boot_s)

    def _stalled(self, at: Instant, point: str, watched: _Watched) -> Signal:
        phase, waited_s = watched.child.phase or "open", round(watched.child.waited_s, 1)
        watched.state = f"{point} does not answer: {phase} waits"
        text = f"{point} does not answer: {phase} has waited {waited_s:g} s in process {watched.child.pid}"
        facts: Facts = {"phase": phase, "waited_s": waited_s}
        return self.signal(at, self.means.stalled, text, device=point, facts=facts)

    def _judge(self, at: Instant, point: str, watched: _Watched, answer: "Mapping[str, Any]") -> "tuple[Signal, ...]":
        number = answer["errno"]
        if any(key in answer for key in ("free_bytes", "bytes")):
            self._forget_numbers(point)  # another kind may be mounted there now
        labels = (("fstype", watched.kind), ("mountpoint", point))
        for key, name in (("free_bytes", "node_filesystem_avail_bytes"), ("bytes", "node_filesystem_size_bytes")):
            if key in answer:
                self.numbers[name, labels] = float(answer[key])
        if number is None:
            watched.writable = watched.writable or "read" not in answer
            watched.errors = 0
            return ()
        name = errno.errorcode.get(number, str(number))
        text = f"{point}: {answer.get('phase', 'open')} ended with {name} ({os.strerror(number)})"
        if number == errno.EROFS:
            named = point in (self._paths or ())  # otherwise only what was writable can have become read-only
            expected = watched.writable or watched.emergency or named
            return (self.signal(at, self.means.read_only, text, device=point),) if expected else ()
        if number in _NO_FAULT:
            if not self.means.full or number != errno.ENOSPC:
                return ()
            facts: Facts = {"free_bytes": int(answer.get("free_bytes", 0))}
            return (self.signal(at, self.means.full, text, device=point, facts=facts),)
        watched.errors += 1
        if watched.errors < 2:
            return watched.found
        return (self.signal(at, self.means.failed, text, device=point, facts={"error": name}),)
