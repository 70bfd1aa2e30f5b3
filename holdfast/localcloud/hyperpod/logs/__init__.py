"""Shipping of log lines and events to CloudWatch Logs, from the control plane and from files of nodes."""

from holdfast.localcloud.hyperpod.logs.events import EventSink, FileTail, Tailer, stamp
from holdfast.localcloud.hyperpod.logs.shipping import LogShipper

__all__ = ["EventSink", "FileTail", "LogShipper", "Tailer", "stamp"]
