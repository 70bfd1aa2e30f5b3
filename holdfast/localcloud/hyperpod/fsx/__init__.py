"""File systems as directories of this machine, and data repository associations: list, plan, copy."""

from holdfast.localcloud.hyperpod.fsx.lustre import AssociationSync, SyncResult, ensure_directory, remove_others
from holdfast.localcloud.hyperpod.fsx.storage import Storage
from holdfast.localcloud.hyperpod.fsx.sync import FileStat, ObjectStat, SyncEntry, SyncPlan, plan

__all__ = [
    "AssociationSync",
    "FileStat",
    "ObjectStat",
    "Storage",
    "SyncEntry",
    "SyncPlan",
    "SyncResult",
    "ensure_directory",
    "plan",
    "remove_others",
]
