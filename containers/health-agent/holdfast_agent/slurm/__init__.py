"""Slurm's own commands from a node, each with a deadline and never two at once, and what they say of nodes."""

from holdfast_agent.slurm.nodes import SlurmNode, parse_nodes
from holdfast_agent.slurm.program import Program, SlurmError

__all__ = ["Program", "SlurmError", "SlurmNode", "parse_nodes"]
