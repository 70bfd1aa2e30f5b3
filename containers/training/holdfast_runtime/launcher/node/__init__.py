"""``holdfast-run`` on one node: connects the other rooms, answers ``status``, and is the command."""

from holdfast_runtime.launcher.node.command import main
from holdfast_runtime.launcher.node.launcher import BEGINNINGS, Launcher
from holdfast_runtime.launcher.node.report import print_status

__all__ = ["BEGINNINGS", "Launcher", "main", "print_status"]
