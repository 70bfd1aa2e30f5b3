"""Reachability of instances, as EC2's check: an ICMP echo a second, answered by the kernel."""

import select
import socket
import struct
import threading
from collections.abc import Callable, Iterable
from functools import partial

from holdfast.localcloud.nodes import Node
from holdfast.localcloud.supervision import Worker

PROBE_EVERY_S = 1.0
SILENT_AFTER_PROBES = 5
ECHO_REQUEST, ECHO_REPLY = 8, 0
IPV4_HEADER_BYTES = 20


class ReachabilityProbe:
    """Thread that probes the addresses of nodes; ``on_change`` is called when one becomes silent."""

    def __init__(self, *, on_change: Callable[[], None]) -> None:
        self._on_change = on_change
        self._lock = threading.Lock()
        self._unanswered: dict[tuple[str, int], int] = {}
        """(address, pid of init) -> probes in a row without an answer. A rebooted node starts afresh."""
        self._stopping = threading.Event()
        self.worker: Worker | None = None
        self._socket: socket.socket | None = None

    def start(self, pinger: socket.socket) -> None:
        """Start probing through a raw ICMP socket of the nodes' network; ``stop`` closes it."""
        self._socket = pinger
        self._stopping = threading.Event()
        self.worker = Worker(name="reach", work=partial(self._run, pinger, self._stopping), stopping=self._stopping)
        self.worker.start()

    def stop(self) -> None:
        self._stopping.set()
        if self.worker is not None and self._socket is not None:
            self.worker.join(2 * PROBE_EVERY_S)
            self._socket.close()
        self.worker = self._socket = None

    def follow(self, nodes: Iterable[Node]) -> None:
        desired = {(node.spec.address, node.pid) for node in nodes}
        with self._lock:
            self._unanswered = {key: self._unanswered.get(key, 0) for key in desired}

    def is_silent(self, node: Node) -> bool:
        """Return True if the last five probes had no answer."""
        with self._lock:
            return self._unanswered.get((node.spec.address, node.pid), 0) >= SILENT_AFTER_PROBES

    def _run(self, pinger: socket.socket, stopping: threading.Event) -> None:
        pinger.settimeout(0.0)
        sequence = 0
        while not stopping.is_set():
            sequence = (sequence + 1) % 65536
            with self._lock:
                addresses = {address for address, _ in self._unanswered}
            for address in addresses:
                _send(pinger, address=address, sequence=sequence)
            stopping.wait(PROBE_EVERY_S)
            answered = _answers(pinger)
            with self._lock:
                self._unanswered = {
                    (address, pid): 0 if address in answered else count + (address in addresses)
                    for (address, pid), count in self._unanswered.items()
                }
                became_silent = SILENT_AFTER_PROBES in self._unanswered.values()
            if became_silent:
                self._on_change()
            if self.worker is not None:
                self.worker.passed()


def _send(pinger: socket.socket, *, address: str, sequence: int) -> None:
    try:
        pinger.sendto(echo_request(sequence), (address, 0))
    except OSError:
        return  # no route and a full queue are silence too


def _answers(pinger: socket.socket) -> set[str]:
    answered: set[str] = set()
    while select.select([pinger], [], [], 0)[0]:
        packet, (address, _) = pinger.recvfrom(2048)
        if len(packet) > IPV4_HEADER_BYTES and packet[IPV4_HEADER_BYTES] == ECHO_REPLY:
            answered.add(address)
    return answered


def echo_request(sequence: int) -> bytes:
    """An ICMP echo request without payload (RFC 792)."""
    head = struct.pack("!BBHHH", ECHO_REQUEST, 0, 0, 0x4846, sequence)
    total = sum(struct.unpack("!4H", head))
    total = (total >> 16) + (total & 0xFFFF)
    return struct.pack("!BBHHH", ECHO_REQUEST, 0, ~(total + (total >> 16)) & 0xFFFF, 0x4846, sequence)
