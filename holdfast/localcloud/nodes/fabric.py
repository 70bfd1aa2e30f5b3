"""Network between nodes: a bridge in its own network namespace, pinned by a file."""

import contextlib
import ipaddress
import socket
import subprocess
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from holdfast.localcloud.nodes.kernel import boot
from holdfast.localcloud.nodes.kernel.namespaces import in_namespace, in_thread

from .spec import NodeError

METADATA_ADDRESS = "169.254.169.254"
"""Instance metadata of EC2; ``Fabric.listen`` can serve it."""
POD_IDENTITY_ADDRESS = "169.254.170.23"
"""Credentials of pods on EKS (EKS user guide, pod-identities); the same."""

CONNECT_S = 5.0


@dataclass(frozen=True, kw_only=True)
class Network:
    network: ipaddress.IPv4Network
    gateway: ipaddress.IPv4Address


def run_ip(*commands: str, namespace: Path, force: bool = False) -> None:
    """Run ``ip`` commands in a network namespace, in one process. ``force`` ignores errors."""
    argv = ["nsenter", f"--net={namespace}", "ip", *(["-force"] if force else []), "-batch", "-"]
    done = subprocess.run(argv, input="\n".join(commands) + "\n", capture_output=True, text=True, check=False)
    if done.returncode != 0 and not force:
        raise NodeError(f"network setup failed, given {list(commands)}: {done.stderr.strip()}")


def set_network(settings: Mapping[str, str], *, namespace: Path) -> None:
    """Write settings below /proc/sys/net of a network namespace."""

    def write() -> None:
        for path, value in settings.items():
            Path("/proc/sys/net", path).write_text(value)

    in_namespace(namespace, boot.CLONE_NEWNET, write)


def link_name(instance_id: str) -> str:
    """Return the name of the fabric's end of a node's link; the kernel allows 15 characters."""
    return "v" + instance_id.replace("-", "")[-14:]


def mac_of(address: str) -> str:
    """Return a locally administered MAC for an IPv4 address."""
    return "02:00:" + ":".join(f"{byte:02x}" for byte in ipaddress.IPv4Address(address).packed)


class Fabric:
    """Bridge of one home. ``path`` is the pin: while it is mounted, the namespace lives."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def exists(self) -> bool:
        with contextlib.suppress(FileNotFoundError):
            return self.path.stat().st_dev != self.path.parent.stat().st_dev
        return False

    def create(self, network: Network) -> None:
        gateway = network.gateway
        self.path.touch()
        in_thread(self._pin_new_namespace)
        run_ip(
            "link set lo up",
            "link add br0 type bridge stp_state 0 mcast_snooping 0",
            f"link set br0 address {mac_of(str(gateway))} addrgenmode none up",
            f"addr add {gateway}/{network.network.prefixlen} dev br0",
            *(f"addr add {address}/32 dev lo" for address in (METADATA_ADDRESS, POD_IDENTITY_ADDRESS)),
            "route add unreachable default",
            namespace=self.path,
        )

    def remove(self) -> None:
        while self.exists():
            run_ip("link del br0", namespace=self.path, force=True)
            boot.umount(str(self.path), flags=boot.MNT_DETACH)
        self.path.unlink(missing_ok=True)

    def route(self, network: str, *, via: str) -> None:
        run_ip(f"route replace {network} via {via} dev br0", namespace=self.path)

    def set_link(self, link: str, *, up: bool) -> None:
        run_ip(f"link set {link} {'up' if up else 'down'}", namespace=self.path)

    def delete_link(self, link: str) -> None:
        if self.exists():
            run_ip(f"link del {link}", namespace=self.path, force=True)

    def listen(self, address: str, port: int) -> socket.socket:
        self._require()
        return listen_in(self.path, address=address, port=port)

    def stream(self) -> socket.socket:
        self._require()
        return in_namespace(self.path, boot.CLONE_NEWNET, lambda: socket.socket(socket.AF_INET, socket.SOCK_STREAM))

    def pinger(self) -> socket.socket:
        self._require()
        return in_namespace(
            self.path, boot.CLONE_NEWNET, lambda: socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP)
        )

    def _require(self) -> None:
        if not self.exists():
            raise NodeError(f"the network {self.path} does not exist; open the fleet first")

    def _pin_new_namespace(self) -> None:
        boot.unshare(boot.CLONE_NEWNET)
        boot.mount(source=f"/proc/self/task/{threading.get_native_id()}/ns/net", target=str(self.path), flags=4096)
        # A router that has no way says so, every time, and nobody waits; without it packets vanish.
        with contextlib.suppress(OSError):
            Path("/proc/sys/net/ipv4/ip_forward").write_text("1")
            Path("/proc/sys/net/ipv4/icmp_ratelimit").write_text("0")


def listen_in(namespace: Path, *, address: str, port: int) -> socket.socket:
    return in_namespace(namespace, boot.CLONE_NEWNET, lambda: _listen_here(address, port))


def connect_in(namespace: Path, *, port: int) -> socket.socket:
    """Connect to loopback inside a network. Raises: OSError."""
    here = ("127.0.0.1", port)
    connection = in_namespace(namespace, boot.CLONE_NEWNET, lambda: socket.create_connection(here, CONNECT_S))
    connection.settimeout(None)
    return connection


def _listen_here(address: str, port: int) -> socket.socket:
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((address, port))
        listener.listen(128)
    except OSError as error:
        listener.close()
        raise NodeError(f"cannot listen on {address}:{port} inside the fabric: {error}") from error
    return listener
