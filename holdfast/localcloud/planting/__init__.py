"""
Plants faults on nodes, for real: whoever looks meets them by its own calls, in the same files, libraries and devices.

``faults`` is the table and ``lines`` what the kernel would say, both pure. ``effects`` does it. A fault that lasts is
held by a process of its own (``python -m holdfast.localcloud.planting``), which undoes it when its time is over, and
ends with its node.
"""

from holdfast.localcloud.planting.faults import (
    FAULTS,
    MOST_XID,
    Fault,
    FaultError,
    fault_named,
    names_beginning_with,
    seconds_of,
)
from holdfast.localcloud.planting.planting import PlantingError, end, end_all, plant, planted
from holdfast.localcloud.planting.records import Planted

__all__ = [
    "FAULTS",
    "MOST_XID",
    "Fault",
    "FaultError",
    "Planted",
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
