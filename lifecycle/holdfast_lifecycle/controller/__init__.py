"""
MariaDB, accounting and background work on a controller, and their move to the shared file system; loaded on first use.
"""

from holdfast_lifecycle.controller.accounting import point_slurmdbd, send_records, sends_records
from holdfast_lifecycle.controller.background import is_running, leave_running
from holdfast_lifecycle.controller.database import DATA, admit_slurm, ask, data_owner, make_data, start_database
from holdfast_lifecycle.controller.moving import (
    LOCK,
    LOG,
    accounting_is_up,
    adopt,
    adopt_running,
    is_moved,
    move_accounting,
)

__all__ = [
    "DATA",
    "LOCK",
    "LOG",
    "accounting_is_up",
    "admit_slurm",
    "adopt",
    "adopt_running",
    "ask",
    "data_owner",
    "is_moved",
    "is_running",
    "leave_running",
    "make_data",
    "move_accounting",
    "point_slurmdbd",
    "send_records",
    "sends_records",
    "start_database",
]
