"""Processes in /proc: identity despite pid reuse, and namespaces."""

import contextlib
import fcntl
import os
import select
import signal
from collections.abc import Iterator
from pathlib import Path

PROC = Path("/proc")
_NS_GET_PARENT = 0xB702


def _stat_fields(pid: int) -> list[str]:
    """Return fields of /proc/PID/stat from the third on; the second may hold spaces and brackets."""
    try:
        return (PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return []


def start_ticks(pid: int) -> int | None:
    """Return the process's start, in clock ticks since boot, or None."""
    fields = _stat_fields(pid)
    return int(fields[19]) if fields else None


def state(pid: int) -> str:
    fields = _stat_fields(pid)
    return fields[0] if fields else ""


def alive(*, pid: int, ticks: int) -> bool:
    fields = _stat_fields(pid)
    return bool(fields) and int(fields[19]) == ticks and fields[0] not in "ZX"


@contextlib.contextmanager
def pidfd(*, pid: int, ticks: int) -> Iterator[int | None]:
    """Return a handle that never means another process, or None."""
    try:
        fd = os.pidfd_open(pid)
    except ProcessLookupError:
        yield None
        return
    try:
        # Opened first, compared second: a pid recycled in between shows other ticks.
        yield fd if alive(pid=pid, ticks=ticks) else None
    finally:
        os.close(fd)


def kill(*, pid: int, ticks: int, timeout_s: float) -> bool:
    """Send SIGKILL and wait; True if the process is gone."""
    with pidfd(pid=pid, ticks=ticks) as fd:
        if fd is None:
            return True
        with contextlib.suppress(ProcessLookupError):
            signal.pidfd_send_signal(fd, signal.SIGKILL)
        return wait_ended(fd, timeout_s=timeout_s)


def wait_ended(fd: int, *, timeout_s: float) -> bool:
    poller = select.poll()
    poller.register(fd, select.POLLIN)
    return bool(poller.poll(max(0.0, timeout_s) * 1000))


def pids() -> list[int]:
    return [int(entry) for entry in os.listdir(PROC) if entry.isdigit()]  # noqa: PTH208  names are all that is needed


def namespace(pid: int, kind: str) -> str:
    """Return the name of a namespace like ``pid:[4026531836]``, or ""."""
    try:
        return os.readlink(f"/proc/{pid}/ns/{kind}")  # noqa: PTH115
    except OSError:
        return ""


def members(pid: int) -> list[int]:
    """Return every process in the pid namespace of ``pid`` and in those inside it."""
    desired = namespace(pid, "pid")
    inside: dict[str, bool] = {"": False, desired: bool(desired)}
    found = []
    for other in pids():
        name = namespace(other, "pid")
        if name not in inside:
            inside[name] = desired in _ancestors(other)
        if inside[name]:
            found.append(other)
    return found


def _ancestors(pid: int) -> list[str]:
    names: list[str] = []
    with contextlib.ExitStack() as opened, contextlib.suppress(OSError):
        handle = os.open(PROC / str(pid) / "ns/pid", os.O_RDONLY | os.O_CLOEXEC)
        while True:
            opened.callback(os.close, handle)
            handle = fcntl.ioctl(handle, _NS_GET_PARENT)  # EPERM above the caller's own
            names.append(f"pid:[{os.fstat(handle).st_ino}]")
    return names


def entrances(inside: list[int]) -> list[int]:
    """Return the nsenter processes of programs among ``inside``; a stopped one blocks the end of a namespace."""
    parents = {int(fields[1]) for fields in map(_stat_fields, inside) if fields} - {*inside, 0}
    return sorted(pid for pid in parents if program(pid) == "nsenter")


def program(pid: int) -> str:
    """Return the program's name, at most 15 characters, or ""."""
    try:
        return (PROC / str(pid) / "comm").read_text().strip()
    except OSError:
        return ""


def command_line(pid: int) -> bytes:
    """Return the command line, each word followed by a zero byte, or ""."""
    try:
        return (PROC / str(pid) / "cmdline").read_bytes()
    except OSError:
        return b""


def parent(pid: int) -> int:
    fields = _stat_fields(pid)
    return int(fields[1]) if fields else 0


def signal_all(targets: list[int], sign: signal.Signals) -> None:
    for pid in targets:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, sign)


def users_of_overlays_below(directory: Path) -> list[int]:
    """Return processes in other mount namespaces that use an overlay written below ``directory``."""
    own, needle = namespace(os.getpid(), "mnt"), f"upperdir={directory}/"
    verdicts: dict[str, bool] = {own: False, "": False}
    found = []
    for pid in pids():
        name = namespace(pid, "mnt")
        if name not in verdicts:
            try:
                verdicts[name] = needle in (PROC / str(pid) / "mountinfo").read_text()
            except OSError:
                continue
        if verdicts[name]:
            found.append(pid)
    return found
