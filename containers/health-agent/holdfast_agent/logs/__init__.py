"""Growing logs: the kernel's device, and files that are rotated, truncated and replaced."""

from holdfast_agent.logs.device import DeviceLog
from holdfast_agent.logs.followed import FollowedFile
from holdfast_agent.logs.source import Batch, Source

__all__ = ["Batch", "DeviceLog", "FollowedFile", "Source"]
