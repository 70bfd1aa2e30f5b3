"""State that outlives the process: snapshots of moto's services and ours, their lock, and the disk's free space."""

from holdfast.localcloud.aws.state.disk_space import READING, RESERVE_BYTES, DiskSpace, is_change
from holdfast.localcloud.aws.state.gate import Gate
from holdfast.localcloud.aws.state.persistence import Persistence
from holdfast.localcloud.aws.state.pickling import forget

__all__ = ["READING", "RESERVE_BYTES", "DiskSpace", "Gate", "Persistence", "forget", "is_change"]
