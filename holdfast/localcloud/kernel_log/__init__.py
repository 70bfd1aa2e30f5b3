"""Kernel log for each node (Linux has one for the whole machine), served by one process per home."""

from holdfast.localcloud.kernel_log.logs import KernelLogError, KernelLogs

__all__ = ["KernelLogError", "KernelLogs"]
