"""
``holdfast-run`` on one node: connects the other rooms, answers ``status``, and is the command. ``launcher`` makes its
parts, each of which has one job and is told of the others that it needs.
"""

from holdfast_runtime.launcher.node.command import main
from holdfast_runtime.launcher.node.launcher import Launcher
from holdfast_runtime.launcher.node.peers import BEGINNINGS
from holdfast_runtime.launcher.node.ranks import Deaths
from holdfast_runtime.launcher.node.report import print_status

__all__ = ["BEGINNINGS", "Deaths", "Launcher", "main", "print_status"]
