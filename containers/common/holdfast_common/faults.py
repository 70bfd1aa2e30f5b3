"""The fault taxonomy: which signal means which fault, how bad it is, and the least remedy that cures it.

The rows are data (``faults.json``), each with its source. Whoever detects or injects a fault uses its name from there.
"""

import json
from dataclasses import dataclass
from enum import Enum
from pathlib import Path


class Severity(Enum):
    """How far the damage reaches."""

    INFO = "info"
    """Worth knowing; nothing is damaged."""
    PROCESS = "process"
    """One process; its node is sound."""
    DEVICE = "device"
    """One device of the node, and whoever uses it."""
    NODE = "node"
    """Everything on the node."""


class Remedy(Enum):
    """What cures a fault, least first."""

    NONE = "none"
    RESTART_PROCESS = "restart-process"
    RESET_GPU = "reset-gpu"
    REBOOT = "reboot"
    REPLACE = "replace"


class When(Enum):
    """How long a remedy may wait."""

    NOW = "now"
    BOUNDARY = "boundary"
    """At the next step or the end of the job: what runs is not hurt."""


@dataclass(frozen=True)
class Fault:
    """A row of the taxonomy."""

    name: str
    signal: str
    severity: Severity
    remedy: Remedy
    when: When
    source: str


def _read(row: "dict[str, str]") -> Fault:
    return Fault(
        name=row["name"],
        signal=row["signal"],
        severity=Severity(row["severity"]),
        remedy=Remedy(row["remedy"]),
        when=When(row.get("when", "now")),
        source=row["source"],
    )


FAULTS = tuple(_read(row) for row in json.loads(Path(__file__).with_name("faults.json").read_text("utf-8"))["faults"])

_BY_NAME = {fault.name: fault for fault in FAULTS}


def fault_named(name: str) -> Fault:
    """The row of a fault; raises KeyError with the names there are."""
    try:
        return _BY_NAME[name]
    except KeyError:
        raise KeyError(f"unknown fault '{name}'; the taxonomy has {', '.join(sorted(_BY_NAME))}") from None
