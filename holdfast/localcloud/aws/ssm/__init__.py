"""
Session Manager of Systems Manager: sessions to nodes of HyperPod clusters, with service and agent in one process.

The service gives out tokens and relays messages; the agent runs shells, commands and connections on the node. Message
by message after AWS's plugin and agent: see ``holdfast.session_manager``.
"""

from holdfast.localcloud.aws.ssm.channel import CHANNEL_PATH, serve_channel
from holdfast.localcloud.aws.ssm.machine import EnterNode, Machine, enter_local_node
from holdfast.localcloud.aws.ssm.service import SessionManager
from holdfast.localcloud.aws.ssm.sessions import Sessions

__all__ = [
    "CHANNEL_PATH",
    "EnterNode",
    "Machine",
    "SessionManager",
    "Sessions",
    "enter_local_node",
    "serve_channel",
]
