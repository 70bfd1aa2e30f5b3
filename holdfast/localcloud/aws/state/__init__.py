"""
What outlives the process: snapshots of moto's services and of ours, the lock under which they are taken, and whether
the disk takes a change. What a service's state is, the service says.
"""

from holdfast.localcloud.aws.state.disk_space import READING, RESERVE_BYTES, Room, is_change
from holdfast.localcloud.aws.state.gate import Gate
from holdfast.localcloud.aws.state.persistence import Persistence
from holdfast.localcloud.aws.state.pickling import forget

__all__ = ["READING", "RESERVE_BYTES", "Gate", "Persistence", "Room", "forget", "is_change"]
