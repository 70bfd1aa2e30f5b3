"""Ways for bytes between the machine's loopback and the nodes' network, which know nothing of each other."""

from holdfast.localcloud.forwarding.forwarder import AWS_PORT, Forwarder

__all__ = ["AWS_PORT", "Forwarder"]
