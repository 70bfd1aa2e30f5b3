"""
Process groups that come back: made again in each generation under the names that they had, and left at once.

``group`` opens, breaks and closes them, ``recorded`` knows those that the script made, ``holders`` finds who keeps an
old one, ``polling`` quiets one that cannot end yet, ``files`` has room for their connections. What is touched of torch
behind its public interface is in ``private``, with the versions tested, and in ``nccl``.
"""

from holdfast_runtime.groups import files, nccl, private
from holdfast_runtime.groups.cutting import mesh_like, moved, ordered, recut
from holdfast_runtime.groups.group import Group, Opening
from holdfast_runtime.groups.holders import holders, sharded_beside
from holdfast_runtime.groups.polling import poll_once
from holdfast_runtime.groups.private import UnsupportedError, check_version
from holdfast_runtime.groups.recorded import RecordedGroups
from holdfast_runtime.groups.sockets import sockets_of
from holdfast_runtime.groups.waiting import Waits, has_ended

__all__ = [
    "Group",
    "Opening",
    "RecordedGroups",
    "UnsupportedError",
    "Waits",
    "check_version",
    "files",
    "has_ended",
    "holders",
    "mesh_like",
    "moved",
    "nccl",
    "ordered",
    "poll_once",
    "private",
    "recut",
    "sharded_beside",
    "sockets_of",
]
