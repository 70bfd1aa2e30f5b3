"""Node networking: instance metadata, route to the embedded AWS, reachability check."""

from holdfast.localcloud.hyperpod.network.metadata import LONGEST_TTL_S, Item, Metadata, listing
from holdfast.localcloud.hyperpod.network.reach import echo_request
from holdfast.localcloud.hyperpod.network.ways import NodeLinks

__all__ = ["LONGEST_TTL_S", "Item", "Metadata", "NodeLinks", "echo_request", "listing"]
