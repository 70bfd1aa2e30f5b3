"""
Rejected state of the embedded AWS: moved aside for the version that can use it, with its file systems.

Directories under ``<home>/fsx`` hold checkpoints, so they are kept as long as the rejected state.
"""

import time
from pathlib import Path

from holdfast.localcloud.home.private import write_private

STATE = Path("aws", "state")
FILE_SYSTEMS = "file-systems"


def set_aside(home: Path) -> Path:
    """Move the state aside and list the directories it may use; return its new folder."""
    state = home / STATE
    present = {entry.name for entry in (home / "fsx").glob("fs-*")}
    write_private(state / FILE_SYSTEMS, "".join(f"{name}\n" for name in sorted(present - spared(home))).encode())
    target = state.with_name(f"set-aside-{time.strftime('%Y%m%d-%H%M%S')}-{time.time_ns() % 1_000_000}")
    state.rename(target)
    state.mkdir(mode=0o700)
    return target


def spared(home: Path) -> frozenset[str]:
    """Return names of directories under ``<home>/fsx`` of rejected state that still exists."""
    lists = (home / STATE.parent).glob(f"set-aside-*/{FILE_SYSTEMS}")
    return frozenset(name for path in lists for name in path.read_text(encoding="utf-8").split())
