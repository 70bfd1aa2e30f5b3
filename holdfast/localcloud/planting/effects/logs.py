"""Kernel messages: in the node's log, and in syslog's files."""

import time
from collections.abc import Sequence
from pathlib import Path

from holdfast.localcloud.kernel_log import KernelLogs
from holdfast.localcloud.nodes import Node
from holdfast.localcloud.nodes.kernel import proc
from holdfast.localcloud.planting.lines import GpuProcess

_SYSLOG = ("/var/log/messages", "/var/log/syslog", "/var/log/kern.log")
_ERROR = 3


def write_kernel_lines(node: Node, lines: Sequence[str], *, logs: KernelLogs) -> None:
    """Write kernel messages, also to existing files of syslog: HyperPod's agent reads /var/log/messages."""
    logs.write(node.spec.instance_id, lines, level=_ERROR)
    stamp = time.strftime("%b %e %H:%M:%S")
    text = "".join(f"{stamp} {node.spec.hostname} kernel: {line}\n" for line in lines).encode()
    for path in _SYSLOG:
        file = node.inside(path)
        if file.exists():
            file.append(text)


def victim(node: Node) -> GpuProcess | None:
    candidates = [pid for pid in proc.members(node.pid) if proc.program(pid).startswith(("python", "pt_main"))]
    for pid in sorted(candidates, key=lambda pid: proc.start_ticks(pid) or 0, reverse=True):
        try:
            status = Path(f"/proc/{pid}/status").read_text()
        except OSError:
            continue
        inner = next(line.split()[-1] for line in status.splitlines() if line.startswith("NSpid:"))
        return GpuProcess(pid=int(inner), name=proc.program(pid))
    return None
