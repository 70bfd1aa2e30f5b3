"""EFA and InfiniBand devices as the kernel shows them: read in one place, judged without a clock in another."""

from holdfast_agent.fabric.judging import Finding, Ports
from holdfast_agent.fabric.tree import ROOT, read_tree

__all__ = ["ROOT", "Finding", "Ports", "read_tree"]
