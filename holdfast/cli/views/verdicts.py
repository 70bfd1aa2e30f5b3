"""Faults and Xids as health agents judge them, from the agent's own policy."""

import re
from typing import TYPE_CHECKING

from holdfast_common import FAULTS, Remedy, When

if TYPE_CHECKING:
    from holdfast_agent.verdicts import Row

_XID = re.compile(r"xid-(\d{1,3})", re.ASCII)


def explained(name: str) -> list[str]:
    """Lines about a fault, or about an Xid such as ``xid-79``; empty if it is neither."""
    if (row := _row_of(name)) is not None:
        return [
            f"{name}: fault {row.fault.name}: {row.fault.signal}",
            f"  severity: {row.severity.value}; remedy: {_due(row.remedy, row.when)}",
            f"  source: {row.source}",
        ]
    return [
        line
        for fault in FAULTS
        if fault.name == name
        for line in (
            f"{name}: {fault.signal}",
            f"  severity: {fault.severity.value}; least remedy: {_due(fault.remedy, fault.when)}",
            f"  source: {fault.source}",
        )
    ]


def without_remedy(name: str) -> str:
    """Remark on an Xid for which agents do nothing; empty for all else."""
    row = _row_of(name)
    if row is None or row.remedy is not Remedy.NONE or row.often or row.jobs or row.variants or row.asks:
        return ""
    return f"health agents take no action on it: {name} is {row.fault.name}; see: holdfast explain {name}"


def _due(remedy: Remedy, when: When) -> str:
    return remedy.value if remedy is Remedy.NONE else f"{remedy.value}, due {when.value}"


def _row_of(name: str) -> "Row | None":
    from holdfast_agent.signals import Signal
    from holdfast_agent.verdicts import Policy

    found = _XID.fullmatch(name)
    return None if found is None else Policy.standard().row(Signal("xid", 0.0, code=int(found[1])))
