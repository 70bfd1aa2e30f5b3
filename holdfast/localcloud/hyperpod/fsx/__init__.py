"""File systems as directories of this machine, and data repository associations: list, plan, copy."""

from holdfast.localcloud.hyperpod.fsx.lustre import Copied, Linked, ensure_directory, remove_others
from holdfast.localcloud.hyperpod.fsx.storage import Storage
from holdfast.localcloud.hyperpod.fsx.sync import Entry, FileStat, ObjectStat, Plan, plan

__all__ = [
    "Copied",
    "Entry",
    "FileStat",
    "Linked",
    "ObjectStat",
    "Plan",
    "Storage",
    "ensure_directory",
    "plan",
    "remove_others",
]
