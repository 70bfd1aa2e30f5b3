"""Processes that were killed and that the kernel has not ended yet."""

import contextlib
import os
import time
from collections.abc import Callable
from pathlib import Path

from holdfast_runtime.launcher.zygote import Life

DEVICES = ("/dev/nvidia", "/dev/neuron", "/dev/kfd")
STARTS_S = 0.01
"""Between two looks whether a process has begun to hold its lock."""
GIVES_WAY = 10
"""Nice value of a process that is dying: a tenth of a usual one's share of a core (sched(7))."""
_EXIT_CODE = 49
"""Place of a process's exit code in what follows its name in /proc/PID/stat (proc_pid_stat(5): field 52)."""


def wait_for_death(life: Life, *, ended: Callable[[], bool], dead: Callable[[], None]) -> None:
    """
    In a thread of its own.

    Args:
        ended: Whether the process is gone altogether.
        dead: Called once, when it is dying.
    """
    while not ended():
        died = life.wait()
        if died:
            dead()
        if died is not False:
            return
        time.sleep(STARTS_S)


def killed_by(pid: int, *, proc: Path = Path("/proc")) -> int:
    """The signal that a process is dying of; 0 where it ends by itself, lives, or is gone."""
    with contextlib.suppress(OSError, IndexError, ValueError):
        fields = (proc / str(pid) / "stat").read_text().rpartition(")")[2].split()
        return int(fields[_EXIT_CODE]) & 0x7F
    return 0


def kernel_state(pid: int, *, proc: Path = Path("/proc")) -> str:
    """Return the state of a process and where in the kernel it waits, such as "state D, waits in io_schedule"."""
    try:
        state = (proc / str(pid) / "stat").read_text().rpartition(")")[2].split()[0]
        return f"state {state}, waits in {(proc / str(pid) / 'wchan').read_text() or '?'}"
    except OSError:
        return "it is gone"


def is_blocked(pid: int) -> bool:
    """Return True if the main thread is in uninterruptible sleep, as in a file system or a driver that is stuck."""
    return kernel_state(pid).startswith("state D")


def give_way(pid: int, *, proc: Path = Path("/proc")) -> None:
    """
    The kernel gives back a dying process's memory in one of its threads; those that recover need the cores more.

    It is no hurry: another process takes its place.
    """
    with contextlib.suppress(OSError):
        for task in (proc / str(pid) / "task").iterdir():
            with contextlib.suppress(OSError):
                os.setpriority(os.PRIO_PROCESS, int(task.name), GIVES_WAY)


def holds_device(pid: int, *, proc: Path = Path("/proc")) -> bool:
    """Whether it has an accelerator, which no other process is to use before its end; so it is if nobody can say."""
    try:
        return any(str(each.readlink()).startswith(DEVICES) for each in (proc / str(pid) / "fd").iterdir())
    except OSError:
        return True
