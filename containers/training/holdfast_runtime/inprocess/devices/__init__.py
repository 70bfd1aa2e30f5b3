"""The GPU of a process, and settings with which it computes the same bits in each run."""

from holdfast_runtime.inprocess.devices.determinism import deterministic
from holdfast_runtime.inprocess.devices.gpu import Claims, device, probe

__all__ = ["Claims", "deterministic", "device", "probe"]
