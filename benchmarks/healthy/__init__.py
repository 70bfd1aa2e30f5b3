"""Logs of nodes on which nothing is wrong, and what other agents would do about them."""

from healthy.nodes import Line, node_log
from healthy.patterns import PATTERNS, Pattern
from healthy.peers import PEERS, Peer, repairs_by

__all__ = ["PATTERNS", "PEERS", "Line", "Pattern", "Peer", "node_log", "repairs_by"]
