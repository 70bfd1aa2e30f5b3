"""Logs of nodes on which nothing is wrong, and what other agents would do about them."""

from healthy.nodes import Line, node_log
from healthy.patterns import PATTERNS, Pattern
from healthy.peers import PEERS, Peer, repairs_of

__all__ = ["PATTERNS", "PEERS", "Line", "Pattern", "Peer", "node_log", "repairs_of"]
