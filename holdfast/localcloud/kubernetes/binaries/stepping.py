"""Resumable steps: one build at a time, a mark for each finished step. An interrupted step starts over."""

import contextlib
import fcntl
import json
import os
import resource
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass
from pathlib import Path

from holdfast.localcloud.kubernetes.binaries.errors import BinariesError

Note = Callable[[str], None]
"""Takes the words that stand beside a step while it is at work."""
Report = Callable[[str], AbstractContextManager[Note]]
"""Shows a step from its title to its end, and gives what takes words about it."""


@contextlib.contextmanager
def silent(_title: str) -> Iterator[Note]:
    yield lambda _words: None


@dataclass(frozen=True, kw_only=True)
class Step:
    """A step that may run again; ``name`` is its mark and must not change during a build."""

    name: str
    title: str
    run: Callable[[Note], None]


@dataclass(frozen=True, kw_only=True)
class Cost:
    """Seconds of wall time, and of CPU of this process and its children."""

    wall_s: float
    cpu_s: float


@contextlib.contextmanager
def only_one(folder: Path) -> Iterator[None]:
    """Hold the folder's lock until this process exits. Raises: BinariesError: another process holds it."""
    folder.mkdir(parents=True, exist_ok=True)
    fd = os.open(folder / ".lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.pread(fd, 32, 0).decode(errors="replace").strip()
            raise BinariesError(
                f"another build is running in {folder} (process {holder or 'unknown'}); wait for it, or end it"
            ) from None
        os.truncate(fd, 0)
        os.pwrite(fd, f"{os.getpid()}\n".encode(), 0)
        yield
    finally:
        os.close(fd)


def go_through(steps: Sequence[Step], *, work: Path, report: Report = silent) -> dict[str, Cost]:
    """Run steps without a mark in ``work``; return the cost of each step's last attempt."""
    marks = work / "done"
    marks.mkdir(parents=True, exist_ok=True)
    costs: dict[str, Cost] = {}
    for step in steps:
        mark = marks / f"{step.name}.json"
        with report(step.title) as note:
            if mark.exists():
                note("done before")
            else:
                clock, cpu = time.monotonic(), cpu_seconds()
                step.run(note)
                spent = Cost(wall_s=round(time.monotonic() - clock, 1), cpu_s=round(cpu_seconds() - cpu, 1))
                write_whole(mark, json.dumps(asdict(spent)))
                note(f"{spent.cpu_s:.0f} s of CPU")
        costs[step.name] = Cost(**json.loads(mark.read_text()))
    return costs


def cpu_seconds() -> float:
    used = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(each.ru_utime + each.ru_stime for each in used)


def write_whole(path: Path, text: str) -> None:
    new = path.with_name(f".{path.name}.new")
    new.write_text(text)
    new.replace(path)
