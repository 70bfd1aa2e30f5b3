"""Ports for servers that start later: nobody has them, and nobody is given them meanwhile.

A port that the kernel gave and took back is in the range of which it gives every outgoing connection a port. Ports from
here stand below that range, and two processes of one test run never get the same.
"""

import itertools
import os
import random
import socket
from pathlib import Path

_FIRST = 12_000
_PER_WORKER = 1_000
_WORKERS = 16
"""Processes of a test run that have ports of their own."""


def _ports_of_this_process() -> list[int]:
    worker = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw")) % _WORKERS
    first = _FIRST + worker * _PER_WORKER
    ephemeral = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    if first + _PER_WORKER > ephemeral:
        raise RuntimeError(f"this machine gives connections ports from {ephemeral} on, tests need those up to there")
    ports = list(range(first, first + _PER_WORKER))
    random.shuffle(ports)  # another test run on this machine goes through them in another order
    return ports


_PORTS = itertools.cycle(_ports_of_this_process())


def free_ports(count: int) -> list[int]:
    """Ports of loopback, and of every other address, on which a server can listen."""
    found: list[int] = []
    while len(found) < count:
        port = next(_PORTS)
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("", port))
            except OSError:
                continue
        found.append(port)
    return found


def free_port() -> int:
    """One of `free_ports`."""
    return free_ports(1)[0]
