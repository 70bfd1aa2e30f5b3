"""Logs of nodes on which nothing is wrong."""

from healthy.nodes import Line, node_log
from healthy.patterns import PATTERNS, Pattern

__all__ = ["PATTERNS", "Line", "Pattern", "node_log"]
