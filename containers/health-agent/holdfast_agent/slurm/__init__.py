"""Slurm's own commands from a node, each with a deadline and never two at once, and the reader of their answers."""

from holdfast_agent.slurm.program import Program, SlurmError, installed_version
from holdfast_common import slurm_answers

SlurmNode = slurm_answers.SlurmNode
parse_nodes = slurm_answers.parse_nodes

__all__ = ["Program", "SlurmError", "SlurmNode", "installed_version", "parse_nodes"]
