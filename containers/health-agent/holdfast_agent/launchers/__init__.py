"""
Launchers of this node's jobs: reports, as verified by the kernel, and commands.

``LauncherSocket`` is the agent's end of the node socket. A connection reports only its own processes; a job's report is
no evidence against a node.
"""

from holdfast_agent.launchers.job_report import JobReport, handed_over, independent
from holdfast_agent.launchers.launcher_socket import MOST_OF_A_USER, LauncherSocket
from holdfast_agent.launchers.peer import Peer
from holdfast_agent.launchers.restarting import RestartRequests

__all__ = [
    "MOST_OF_A_USER",
    "JobReport",
    "LauncherSocket",
    "Peer",
    "RestartRequests",
    "handed_over",
    "independent",
]
