"""
The launchers of this node's jobs: what they run, as far as the kernel vouches for it, and what they are asked to do.

``LauncherSocket`` is the agent's end of the node socket. A connection speaks only of processes of its own; what jobs
say is no evidence against a node, and a node is nowhere judged here.
"""

from holdfast_agent.launchers.job_report import JobReport, handed_over, independent
from holdfast_agent.launchers.launcher_socket import MOST_OF_A_USER, LauncherSocket
from holdfast_agent.launchers.peer import LieError, Peer, peer_of
from holdfast_agent.launchers.restarting import Restarting

__all__ = [
    "MOST_OF_A_USER",
    "JobReport",
    "LauncherSocket",
    "LieError",
    "Peer",
    "Restarting",
    "handed_over",
    "independent",
    "peer_of",
]
