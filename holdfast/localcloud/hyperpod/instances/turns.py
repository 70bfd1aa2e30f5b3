"""Turns of burn-ins: nodes share this machine, whose load would fail their trials."""

import os
from pathlib import Path

from holdfast.localcloud.nodes import Mount

AT = "/opt/holdfast/turns"
"""Where the health agent looks for them; nodes with a machine of their own have none."""
MOST_AT_ONCE = 4
"""More, and each would be a tenth as fast as alone on the machine, which is what a broken disk is known by."""


def turns_mount(home: Path, *, cores: int = os.cpu_count() or 1) -> Mount:
    """Return a mount that all nodes of a home see, with a file per concurrent burn-in, root's only."""
    place = home / "hyperpod" / "turns"
    for kind, count in (("joining", max(1, min(cores, MOST_AT_ONCE))), ("idle", 1)):
        folder = place / kind
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        for number in range(count):
            (folder / str(number)).touch(mode=0o600)
    return Mount(source=place, target=AT, read_only=True)
