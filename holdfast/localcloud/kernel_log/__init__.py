"""
Kernel log for each node: Linux has one for the whole machine.

``KernelLogs`` starts the process that serves a home's logs, attaches nodes, and writes records as the kernel.
"""

from holdfast.localcloud.kernel_log.logs import KernelLogError, KernelLogs

__all__ = ["KernelLogError", "KernelLogs"]
