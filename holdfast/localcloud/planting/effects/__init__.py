"""Effects on a node, by means. A lasting effect is a context manager: entered it is active, on exit it is reverted."""

from holdfast.localcloud.planting.effects.disks import full_disk, read_only_disk
from holdfast.localcloud.planting.effects.driver import hung_driver
from holdfast.localcloud.planting.effects.gpus import answering, device_of
from holdfast.localcloud.planting.effects.holding import FaultHold
from holdfast.localcloud.planting.effects.logs import victim, write_kernel_lines
from holdfast.localcloud.planting.effects.memory import run_out_of_memory
from holdfast.localcloud.planting.effects.packets import lossy_link
from holdfast.localcloud.planting.effects.stall import stalled_mount

__all__ = [
    "FaultHold",
    "answering",
    "device_of",
    "full_disk",
    "hung_driver",
    "lossy_link",
    "read_only_disk",
    "run_out_of_memory",
    "stalled_mount",
    "victim",
    "write_kernel_lines",
]
