"""Byte forwarding between the machine's loopback and the nodes' network."""

from holdfast.localcloud.forwarding.forwarder import AWS_PORT, Forwarder

__all__ = ["AWS_PORT", "Forwarder"]
