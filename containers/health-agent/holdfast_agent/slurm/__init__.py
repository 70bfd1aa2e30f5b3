"""Slurm's commands, each with a deadline and one at a time, and parsers of their output."""

from holdfast_agent.slurm.program import Program, SlurmError, installed_version
from holdfast_common import slurm_answers

SlurmNode = slurm_answers.SlurmNode
parse_nodes = slurm_answers.parse_nodes

__all__ = ["Program", "SlurmError", "SlurmNode", "installed_version", "parse_nodes"]
