"""Detectors: each watches one thing at its own interval and emits signals, without judging them."""

from holdfast_agent.detectors import probing
from holdfast_agent.detectors.checks import Checks
from holdfast_agent.detectors.clock import Clock
from holdfast_agent.detectors.detector import Detector, Instant, Seen, Support
from holdfast_agent.detectors.disk import Disks
from holdfast_agent.detectors.fabric import Fabric
from holdfast_agent.detectors.hma import Hma
from holdfast_agent.detectors.kernel_log import KernelLog
from holdfast_agent.detectors.links import Links
from holdfast_agent.detectors.mounts import Mounts
from holdfast_agent.detectors.nvml import Nvml
from holdfast_agent.detectors.ports import gpu_ports
from holdfast_agent.detectors.slurmd import Slurmd
from holdfast_agent.detectors.stuck_processes import StuckProcesses

__all__ = [
    "Checks",
    "Clock",
    "Detector",
    "Disks",
    "Fabric",
    "Hma",
    "Instant",
    "KernelLog",
    "Links",
    "Mounts",
    "Nvml",
    "Seen",
    "Slurmd",
    "StuckProcesses",
    "Support",
    "gpu_ports",
    "probing",
]
