"""
What nodes reach and how they are reached: instance metadata, the way to the embedded AWS, the reachability check. The
network itself is for `nodes`.
"""

from holdfast.localcloud.hyperpod.network.metadata import LONGEST_TTL_S, Item, Metadata, listing
from holdfast.localcloud.hyperpod.network.reach import echo_request
from holdfast.localcloud.hyperpod.network.ways import Ways

__all__ = ["LONGEST_TTL_S", "Item", "Metadata", "Ways", "echo_request", "listing"]
