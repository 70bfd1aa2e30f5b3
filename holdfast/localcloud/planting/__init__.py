"""
Fault injection on nodes, in the real files, libraries and devices.

``faults`` is the table, ``lines`` the kernel's messages (both pure), ``effects`` injects. A lasting fault is held by
its own process (``python -m holdfast.localcloud.planting``), which reverts it in time and ends with its node.
"""

from holdfast.localcloud.planting.faults import (
    FAULTS,
    FaultError,
    fault_named,
    names_beginning_with,
    seconds_of,
)
from holdfast.localcloud.planting.planting import PlantingError, end, end_all, plant, planted
from holdfast.localcloud.planting.records import ActiveFault

__all__ = [
    "FAULTS",
    "ActiveFault",
    "FaultError",
    "PlantingError",
    "end",
    "end_all",
    "fault_named",
    "lines",
    "names_beginning_with",
    "plant",
    "planted",
    "seconds_of",
]
