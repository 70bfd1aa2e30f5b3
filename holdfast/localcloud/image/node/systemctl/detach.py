"""Detachment of a supervisor from ``systemctl start``."""

from __future__ import annotations

import os
import traceback

from . import records, spawn
from .units import Root, Unit

_PR_SET_NAME = 15


def detach(root: Root, unit: Unit, *, reported: int, lock: int) -> None:
    """Become the supervisor; never returns. ``reported``: pipe for the result; ``lock``: held for its life."""
    try:
        os.setsid()
        if os.fork():
            os._exit(0)
        os.chdir("/")
        os.umask(0o022)
        log = os.open(spawn.log_path(root, unit.name), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o640)
        null = os.open("/dev/null", os.O_RDWR)
        for fd, source in ((0, null), (1, log), (2, log)):
            os.dup2(source, fd)
        for entry in os.listdir("/proc/self/fd"):
            if int(entry) > 2 and int(entry) not in (reported, lock):
                _close(int(entry))
        _rename(unit.name)
        from .supervisor import Supervisor

        Supervisor(root, unit, reported=reported).run()
    except BaseException:  # noqa: BLE001  the entry point of a process
        os.write(2, traceback.format_exc().encode())
        records.write(root, unit.name, dict(records.NONE, active="failed", sub="failed", result="resources"))
    finally:
        os._exit(0)


def _close(fd: int) -> None:
    try:
        os.close(fd)
    except OSError:
        pass


def _rename(name: str) -> None:
    """Hide systemctl's arguments from ``pkill -f slurmd``."""
    import ctypes

    libc = ctypes.CDLL(None)
    libc.prctl(_PR_SET_NAME, f"unit:{name}".encode()[:15], 0, 0, 0)
    with open("/proc/self/stat", encoding="utf-8", errors="replace") as file:
        fields = file.read().rpartition(")")[2].split()
    start, end = int(fields[45]), int(fields[46])  # arg_start and arg_end, fields 48 and 49 of proc(5)
    if 0 < start < end:
        ctypes.memset(start, 0, end - start)
