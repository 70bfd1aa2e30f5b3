"""Connections between nodes and machine, opened and closed with the nodes' network."""

import ipaddress
from collections.abc import Callable, Iterable
from urllib.parse import urlsplit

from holdfast.localcloud.forwarding import AWS_PORT, Forwarder
from holdfast.localcloud.hyperpod.network.metadata import PORT, Lookup, Metadata
from holdfast.localcloud.hyperpod.network.reach import ReachabilityProbe
from holdfast.localcloud.nodes import METADATA_ADDRESS, Fleet, Node
from holdfast.localcloud.supervision import Worker


class NodeLinks:
    """
    Connections of one network at a time.

    Args:
        endpoint: Of the embedded AWS on this machine.
        lookup: Returns the instance with an address, for instance metadata.
        on_silence: Called when a node becomes silent.
    """

    def __init__(self, *, fleet: Fleet, endpoint: str, lookup: Lookup, on_silence: Callable[[], None]) -> None:
        self._fleet = fleet
        self._target = urlsplit(endpoint)
        self._lookup = lookup
        self._reach = ReachabilityProbe(on_change=on_silence)
        self._forwarder: Forwarder | None = None
        self._metadata: Metadata | None = None
        self.network, self.gateway = "", ""
        """Of the nodes, once it is open."""

    @property
    def is_open(self) -> bool:
        return self._forwarder is not None

    def endpoint(self) -> str:
        return f"http://{self.gateway}:{AWS_PORT}"

    def open(self, network: str) -> None:
        """Create the network and serve it. Raise NodeError if this machine cannot run nodes."""
        gateway = str(ipaddress.ip_network(network)[1])
        self._fleet.open(network=network, gateway=gateway)
        self.network, self.gateway = network, gateway
        listener = self._fleet.listen(address=gateway, port=AWS_PORT)
        host, port = self._target.hostname or "127.0.0.1", self._target.port or 80
        self._forwarder = Forwarder(listener=listener, host=host, port=port)
        self._forwarder.start()
        listener = self._fleet.listen(address=METADATA_ADDRESS, port=PORT)
        self._metadata = Metadata(listener=listener, lookup=self._lookup)
        self._metadata.start()
        self._reach.start(self._fleet.pinger())

    def stop(self) -> None:
        self._reach.stop()
        if self._forwarder is not None:
            self._forwarder.stop()
            self._forwarder = None
        if self._metadata is not None:
            self._metadata.stop()
            self._metadata = None

    def close(self) -> None:
        self.stop()
        self._fleet.close()

    def follow(self, nodes: Iterable[Node]) -> None:
        self._reach.follow(nodes)

    def is_silent(self, node: Node) -> bool:
        return self._reach.is_silent(node)

    def workers(self) -> list[Worker]:
        servers = (one.worker for one in (self._forwarder, self._metadata) if one is not None)
        return [*servers, *([] if self._reach.worker is None else [self._reach.worker])]
