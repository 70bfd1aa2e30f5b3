"""
A kernel log for each node: Linux has one for the whole machine, and nothing divides it among namespaces.

``KernelLogs`` starts the process that serves those of a home, hands it a node's mount, and writes records as the kernel
would. What a node does with its /dev/kmsg reaches the process through the kernel alone.
"""

from holdfast.localcloud.kernel_log.logs import KernelLogError, KernelLogs

__all__ = ["KernelLogError", "KernelLogs"]
