"""
``holdfast-run`` on one node: connects the other rooms, answers ``status``, and is the command. ``launcher`` makes the
parts in the order in which they need each other; what listens gets the receiver of its events when it starts.
"""

from holdfast_runtime.launcher.node.agent_link import AgentLink
from holdfast_runtime.launcher.node.carrier import Carrier
from holdfast_runtime.launcher.node.command import main
from holdfast_runtime.launcher.node.generations import Generations
from holdfast_runtime.launcher.node.launcher import Launcher
from holdfast_runtime.launcher.node.peers import BEGINNINGS
from holdfast_runtime.launcher.node.places import Places
from holdfast_runtime.launcher.node.ranks import Deaths, Ranks
from holdfast_runtime.launcher.node.report import ask, print_status
from holdfast_runtime.launcher.node.settling import Settling
from holdfast_runtime.launcher.node.tasks import Tasks

__all__ = [
    "BEGINNINGS",
    "AgentLink",
    "Carrier",
    "Deaths",
    "Generations",
    "Launcher",
    "Places",
    "Ranks",
    "Settling",
    "Tasks",
    "ask",
    "main",
    "print_status",
]
