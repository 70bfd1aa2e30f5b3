"""Signals for the program, such as Slurm's ``--signal``: sent to the ranks that have a handler for them."""

import contextlib
from collections.abc import Iterable
from pathlib import Path

from holdfast_runtime.launcher.ranks.slots import LocalSlot


def has_handler(pid: int, number: int, *, proc: Path = Path("/proc")) -> bool:
    """Return True if a process has installed a handler for a signal (SigCgt in proc_pid_status(5))."""
    with contextlib.suppress(OSError, ValueError):
        for line in (proc / str(pid) / "status").read_text().splitlines():
            if line.startswith("SigCgt:"):
                return bool(int(line.split()[1], 16) >> (number - 1) & 1)
    return False


def forward(number: int, slots: Iterable[LocalSlot]) -> tuple[list[int], list[int]]:
    """
    Send a signal to each rank that has a handler for it; any other would end by it.

    Returns:
        The ranks that it was sent to, and those without a handler.
    """
    sent, without = [], []
    for slot in slots:
        if slot.process is None:
            continue
        if has_handler(slot.process.pid, number):
            slot.process.kill(number)
            sent.append(slot.rank)
        else:
            without.append(slot.rank)
    return sent, without
