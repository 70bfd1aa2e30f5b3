"""Ways for bytes between the machine's loopback and the nodes' network, which know nothing of each other."""

from holdfast.localcloud.forwarding.forwarder import Forwarder

__all__ = ["Forwarder"]
