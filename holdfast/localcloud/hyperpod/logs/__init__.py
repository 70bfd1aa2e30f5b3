"""
Lines and events on their way to CloudWatch Logs, from the control plane and from the files of nodes. What is told is
for those who tell it.
"""

from holdfast.localcloud.hyperpod.logs.events import EventSink, Tail, Tailer, stamp
from holdfast.localcloud.hyperpod.logs.shipping import LogShipper

__all__ = ["EventSink", "LogShipper", "Tail", "Tailer", "stamp"]
