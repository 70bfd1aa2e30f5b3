"""TCP listeners, by the kernel's tables, and the table of those that are allowed."""

import contextlib
import ipaddress
import re
import subprocess
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

import yaml

TABLE = Path(__file__).parents[1] / "cases" / "security" / "ports.yaml"
_PORT = re.compile(r"(?:(?P<address>\[[0-9a-f:]+\]|[0-9.*]+):)?(?P<first>\d+)(?:-(?P<last>\d+))?")
_LISTEN = "0A"
ALWAYS = "always"
PROGRAMS = (
    ("slurmctld", ("every Slurm node", "Slurm controller")),
    ("slurmd", ("every Slurm node", "Slurm compute node")),
    ("kube-apiserver", ("EKS control plane",)),
    ("kubelet", ("EKS node",)),
)
"""Which program makes a node what it is; one with none of them is a login node."""


@dataclass(frozen=True, order=True)
class Listening:
    """A socket. Every address of the node is empty."""

    address: str
    port: int

    def __str__(self) -> str:
        return f"{self.address or '*'}:{self.port}"


@dataclass(frozen=True, kw_only=True)
class Row:
    """A row of the table."""

    place: str
    address: str
    """Empty: any of the node. ``*``: one of them that is not known beforehand."""
    first: int
    last: int
    when: str
    cells: tuple[str, ...]

    def allows(self, one: Listening) -> bool:
        """A socket at fewer addresses than the page says is no finding; one at more is."""
        is_there = self.address in ("", "*") or one.address == self.address
        return is_there and self.first <= one.port <= self.last


def rows(table: Iterable[Mapping[str, str]] | None = None) -> list[Row]:
    """Rows of the table of ports, in its order. Raises ValueError where one cannot be read."""
    found = []
    for one in yaml.safe_load(TABLE.read_text()) if table is None else table:
        port = _PORT.fullmatch(one["port"])
        if port is None:
            raise ValueError(f"got the port {one['port']!r}; allowed: a port, a range, or one at an address")
        first = int(port["first"])
        found.append(
            Row(
                place=one["where"],
                address=(port["address"] or "").strip("[]"),
                first=first,
                last=int(port["last"] or first),
                when=one["when"],
                cells=tuple(one.values()),
            )
        )
    return found


def listening(tcp: str, tcp6: str = "") -> set[Listening]:
    """Sockets of ``/proc/net/tcp`` and ``/proc/net/tcp6`` that listen."""
    found = set()
    for line in [*tcp.splitlines()[1:], *tcp6.splitlines()[1:]]:
        fields = line.split()
        if fields[3] != _LISTEN:
            continue
        address, _, port = fields[1].partition(":")
        words = [bytes.fromhex(address[at : at + 8])[::-1] for at in range(0, len(address), 8)]
        one = ipaddress.ip_address(b"".join(words))
        mapped = one.ipv4_mapped if isinstance(one, ipaddress.IPv6Address) else None
        one = mapped or one
        found.add(Listening(address="" if one.is_unspecified else str(one), port=int(port, 16)))
    return found


def unknown(found: Iterable[Listening], allowed: Iterable[Row]) -> list[Listening]:
    """What listens and is in no row."""
    known = [*allowed]
    return sorted(one for one in found if not any(row.allows(one) for row in known))


def absent(found: Iterable[Listening], allowed: Iterable[Row]) -> list[Row]:
    """Rows that say always, and nothing is there."""
    sockets = [*found]
    return [row for row in allowed if row.when == ALWAYS and not any(row.allows(one) for one in sockets)]


def sockets(*, namespace: Path) -> set[Listening]:
    """What listens in a network namespace, given as its file."""
    enter = ["nsenter", f"--net={namespace}", "cat"]
    tables = [
        subprocess.run([*enter, path], capture_output=True, text=True, check=True, timeout=30).stdout
        for path in ("/proc/net/tcp", "/proc/net/tcp6")
    ]
    return listening(*tables)


def places_of(pid: int) -> tuple[str, ...]:
    """What the node with this process is, in the words of the page."""
    run = _programs(Path(f"/proc/{pid}/ns/net").readlink())
    return next((places for program, places in PROGRAMS if program in run), ("every Slurm node", "Slurm login node"))


def _programs(namespace: Path) -> set[str]:
    found = set()
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):  # it has ended meanwhile
            if (process / "ns/net").readlink() == namespace:
                found.add((process / "comm").read_text().strip())
    return found
