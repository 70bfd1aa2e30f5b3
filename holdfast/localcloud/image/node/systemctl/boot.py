"""Boot, as systemd does as PID 1: start enabled units in order; a failure stops no other."""

from __future__ import annotations

import os
import sys

from . import records
from .manager import JobError, Manager, in_order
from .units import Root, Unit, UnitError


def main(argv: list[str]) -> int:
    manager = Manager(Root(os.environ.get("HOLDFAST_SYSTEMD_ROOT", "")))
    failed = 0
    for unit, awaited in enabled(manager.root, but=frozenset(argv)):
        try:
            manager.start(unit.name, wait=awaited)
        except (JobError, UnitError) as error:
            sys.stderr.write(f"{error}\n")
            failed = 1
    return failed


def enabled(root: Root, *, but: frozenset[str]) -> list[tuple[Unit, bool]]:
    """Return units that the boot targets pull in, in order, and whether another one waits for each."""
    desired = {
        name for target in records.AT_BOOT for kind in ("wants", "requires") for name in root.linked(target, kind)
    }
    units: dict[str, Unit] = {}
    for name in sorted(desired - but):
        unit = root.load(name)
        if unit.load_state == "loaded" and unit.kind in ("service", "mount", "automount") and unit.name not in but:
            units[unit.name] = unit
    awaited = {name for unit in units.values() for name in unit.names("Unit", "After")}
    awaited |= {name for name, unit in units.items() if unit.names("Unit", "Before")}
    return [(unit, unit.name in awaited) for unit in in_order(units)]
