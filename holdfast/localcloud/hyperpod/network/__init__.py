"""
What nodes reach and how they are reached: instance metadata, the way to the embedded AWS, the reachability check. The
network itself is for `nodes`.
"""

from holdfast.localcloud.hyperpod.network.forward import Forwarder
from holdfast.localcloud.hyperpod.network.metadata import LONGEST_TTL_S, PORT, Item, Metadata, listing
from holdfast.localcloud.hyperpod.network.reach import Reach, echo_request

__all__ = ["LONGEST_TTL_S", "PORT", "Forwarder", "Item", "Metadata", "Reach", "echo_request", "listing"]
