"""What runs for long is watched: threads of a process (``Worker``), what they could not do (``Complaints``), and both
as one small file that other processes read (``Passes``). Its collector is spared (``spare_collector``)."""

from holdfast.localcloud.supervision._collector import spare_collector
from holdfast.localcloud.supervision._complaints import Complaints
from holdfast.localcloud.supervision._passes import Pass, Passes, ProcessPasses, passes_path, read_passes, told
from holdfast.localcloud.supervision._worker import Worker

__all__ = [
    "Complaints",
    "Pass",
    "Passes",
    "ProcessPasses",
    "Worker",
    "passes_path",
    "read_passes",
    "spare_collector",
    "told",
]
