"""
State of the embedded AWS that could not be used: kept for the version that can use it, with its file systems.

The directories under ``<home>/fsx`` are worth more than the records that name them: checkpoints are in there. So they
stay for as long as the state that was set aside does.
"""

import time
from pathlib import Path

from holdfast.localcloud.home.private import write_private

STATE = Path("aws", "state")
FILE_SYSTEMS = "file-systems"


def set_aside(home: Path) -> Path:
    """Move the state out of the way and note whose directories it may know; where it is now."""
    state = home / STATE
    present = {entry.name for entry in (home / "fsx").glob("fs-*")}
    write_private(state / FILE_SYSTEMS, "".join(f"{name}\n" for name in sorted(present - spared(home))).encode())
    target = state.with_name(f"set-aside-{time.strftime('%Y%m%d-%H%M%S')}-{time.time_ns() % 1_000_000}")
    state.rename(target)
    state.mkdir(mode=0o700)
    return target


def spared(home: Path) -> frozenset[str]:
    """Names of directories under ``<home>/fsx`` that belong to a state which was set aside and is still there."""
    lists = (home / STATE.parent).glob(f"set-aside-*/{FILE_SYSTEMS}")
    return frozenset(name for path in lists for name in path.read_text(encoding="utf-8").split())
