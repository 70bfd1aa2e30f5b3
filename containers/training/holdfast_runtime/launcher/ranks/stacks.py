"""Stacks of the local ranks on request, written by each process itself (faulthandler)."""

import asyncio
from pathlib import Path
from tempfile import TemporaryDirectory

from holdfast_runtime import control
from holdfast_runtime.launcher.ranks.slots import LocalSlots

DUMP_S = 1.0
"""A thread that runs Python writes where it is at once."""


async def stacks_of(slots: LocalSlots) -> dict[str, str]:
    """Return the stack of each local rank by pid; empty for one that has not answered within DUMP_S."""
    with TemporaryDirectory(prefix="holdfast-stacks-") as folder:
        asked = {}
        for slot in slots.in_view:
            if slot.process is not None and slot.speaks:
                asked[slot.process.pid] = Path(folder, f"{slot.process.pid}.txt")
                slot.send(control.Dump(path=str(asked[slot.process.pid])))
        await asyncio.sleep(DUMP_S)
        return {str(pid): path.read_text(errors="replace") if path.exists() else "" for pid, path in asked.items()}
