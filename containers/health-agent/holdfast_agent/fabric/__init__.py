"""EFA and InfiniBand devices: read from sysfs, judged separately."""

from holdfast_agent.fabric.port_states import Ports
from holdfast_agent.fabric.tree import ROOT, read_tree

__all__ = ["ROOT", "Ports", "read_tree"]
