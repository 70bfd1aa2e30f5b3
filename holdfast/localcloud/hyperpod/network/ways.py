"""All ways between the nodes and the machine, opened together with their network and closed with it."""

import ipaddress
from collections.abc import Callable, Iterable
from urllib.parse import urlsplit

from holdfast.localcloud.forwarding import AWS_PORT, Forwarder
from holdfast.localcloud.hyperpod.network.metadata import PORT, Lookup, Metadata
from holdfast.localcloud.hyperpod.network.reach import Reach
from holdfast.localcloud.nodes import METADATA_ADDRESS, Fleet, Node
from holdfast.localcloud.supervision import Worker


class Ways:
    """
    One network at a time.

    Args:
        endpoint: Of the embedded AWS, as this machine reaches it.
        lookup: What the instance with an address is, for its metadata service.
        on_silence: Called when a node has just become silent.
    """

    def __init__(self, *, fleet: Fleet, endpoint: str, lookup: Lookup, on_silence: Callable[[], None]) -> None:
        self._fleet = fleet
        self._target = urlsplit(endpoint)
        self._lookup = lookup
        self._reach = Reach(on_change=on_silence)
        self._forwarder: Forwarder | None = None
        self._metadata: Metadata | None = None
        self.network, self.gateway = "", ""
        """Of the nodes, once it is open."""

    @property
    def is_open(self) -> bool:
        return self._forwarder is not None

    def endpoint(self) -> str:
        """Where nodes reach the embedded AWS, once there is a network."""
        return f"http://{self.gateway}:{AWS_PORT}"

    def open(self, network: str) -> None:
        """
        Make the network and serve it.

        Raises:
            NodeError: this machine cannot have nodes, or they run on another network.
        """
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
        """Serve no more; network and nodes stay."""
        self._reach.stop()
        if self._forwarder is not None:
            self._forwarder.stop()
            self._forwarder = None
        if self._metadata is not None:
            self._metadata.stop()
            self._metadata = None

    def close(self) -> None:
        """Nothing is left: the next network may be another one."""
        self.stop()
        self._fleet.close()

    def follow(self, nodes: Iterable[Node]) -> None:
        """Probe these, and no others any more."""
        self._reach.follow(nodes)

    def is_silent(self, node: Node) -> bool:
        return self._reach.is_silent(node)

    def workers(self) -> list[Worker]:
        """The threads that run now."""
        servers = (one.worker for one in (self._forwarder, self._metadata) if one is not None)
        return [*servers, *([] if self._reach.worker is None else [self._reach.worker])]
