"""Fault taxonomy: severity and least remedy of each fault; rows with sources are in ``faults.json``."""

import json
from dataclasses import dataclass
from enum import Enum
from pathlib import Path


class Severity(Enum):
    INFO = "info"
    """For information; no damage."""
    PROCESS = "process"
    """One process; its node is sound."""
    DEVICE = "device"
    """One device of the node, and its users."""
    NODE = "node"
    """Everything on the node."""


class Remedy(Enum):
    """Least first."""

    NONE = "none"
    RESTART_PROCESS = "restart-process"
    RESET_GPU = "reset-gpu"
    REBOOT = "reboot"
    REPLACE = "replace"


class When(Enum):
    NOW = "now"
    BOUNDARY = "boundary"
    """At the next step or the end of the job: what runs is not hurt."""


@dataclass(frozen=True)
class Fault:
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
    """Row of a fault; raises KeyError with the known names."""
    try:
        return _BY_NAME[name]
    except KeyError:
        raise KeyError(f"unknown fault '{name}'; allowed: {', '.join(sorted(_BY_NAME))}") from None
