"""
Launchers connected: who they are, how they prove it, and what they say to each other. Every user of a node may
connect to a launcher's port, or listen where a launcher will call: both sides prove that they know the run's token
over nonces of both, and all that follows is sealed with a key of it.
"""

from holdfast_runtime.launcher.links.connections import Handlers, Links
from holdfast_runtime.launcher.links.handshake import Proofs, at_the_other_end
from holdfast_runtime.launcher.links.heartbeat_thread import HeartbeatThread
from holdfast_runtime.launcher.links.known_launchers import Identity
from holdfast_runtime.launcher.links.peers import Address, Peers, PeersError, expand_host_list, find_peers
from holdfast_runtime.launcher.links.seal import SealedLine
from holdfast_runtime.launcher.links.token import TokenError, run_token
from holdfast_runtime.launcher.links.watching import lateness_s, patience_s
from holdfast_runtime.launcher.links.wire import (
    HANDSHAKE,
    LINK,
    AllSettled,
    BuildAt,
    BuiltAt,
    Challenge,
    ChangeAt,
    ChangedAt,
    Done,
    HandOverAt,
    Hello,
    LinkMessage,
    RaisedAt,
    Refused,
    Settled,
    SizeAsked,
    Spares,
    Trouble,
    Warm,
    identity_of,
)

__all__ = [
    "HANDSHAKE",
    "LINK",
    "Address",
    "AllSettled",
    "BuildAt",
    "BuiltAt",
    "Challenge",
    "ChangeAt",
    "ChangedAt",
    "Done",
    "HandOverAt",
    "Handlers",
    "HeartbeatThread",
    "Hello",
    "Identity",
    "LinkMessage",
    "Links",
    "Peers",
    "PeersError",
    "Proofs",
    "RaisedAt",
    "Refused",
    "SealedLine",
    "Settled",
    "SizeAsked",
    "Spares",
    "TokenError",
    "Trouble",
    "Warm",
    "at_the_other_end",
    "expand_host_list",
    "find_peers",
    "identity_of",
    "lateness_s",
    "patience_s",
    "run_token",
]
