"""Nodes of one home: network, boot, complete removal. Records on the tmpfs ``home/nodes`` are the only state."""

import contextlib
import ipaddress
import json
import os
import socket
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from holdfast.localcloud.home import remove_tree, remove_tree_quietly
from holdfast.localcloud.kernel_log import KernelLogError, KernelLogs
from holdfast.localcloud.nodes.kernel import boot as boot_module
from holdfast.localcloud.nodes.kernel import host, proc

from . import cgroups
from .booting import BOOT_TIMEOUT_S, give_kernel_log, start
from .fabric import Fabric, Network, link_name
from .lock import locked
from .node import Node
from .spec import NodeError, NodeRecord, NodeSpec, write_atomically

_LOCK_TIMEOUT_S = BOOT_TIMEOUT_S + 10.0
_KILL_TIMEOUT_S = 10.0


class Fleet:
    """Nodes of one home, from any process; thread-safe."""

    def __init__(self, *, home: Path) -> None:
        self.home = home.resolve()
        self.directory = self.home / "nodes"
        self.fabric = Fabric(self.directory / "fabric")
        self.kernel_logs = KernelLogs(self.directory)
        self._lock = self.home / ".nodes.lock"
        self._settings_file = self.directory / "fleet.json"
        self._closing = self.directory / "closing"

    @staticmethod
    def check_host() -> list[str]:
        return host.check_host()

    # --- the fleet as a whole

    def open(self, *, network: str, gateway: str) -> None:
        """Create the tmpfs and the network of nodes; no-op if open with the same network."""
        desired = _parse(network=network, gateway=gateway)
        if problems := host.check_host():
            raise NodeError("this machine cannot run nodes: " + "; ".join(problems))
        with self._locked(exclusive=True):
            if (current := self._settings()) is not None and self.fabric.exists():
                if current != desired:
                    raise NodeError(
                        f"nodes run on network {current.network} with gateway {current.gateway}, got {network} "
                        f"with {gateway}; close the fleet first"
                    )
                self._closing.unlink(missing_ok=True)
                return
            self._clear()
            self.directory.mkdir(parents=True)
            boot_module.mount(
                source="holdfast",
                target=str(self.directory),
                kind="tmpfs",
                flags=boot_module.MS_NOSUID | boot_module.MS_NODEV,
                data="mode=755",
            )
            with ThreadPoolExecutor(1) as beside:
                logs = beside.submit(self._serve_kernel_logs)
                self.fabric.create(desired)
            logs.result()
            text = json.dumps({"network": str(desired.network), "gateway": str(desired.gateway)}) + "\n"
            write_atomically(path=self._settings_file, text=text)

    def close(self) -> None:
        """Destroy all nodes and the network, leftovers of killed processes included."""
        if os.geteuid() != 0:
            raise NodeError("nodes can only be removed by root; use sudo")
        if not self.home.is_dir():
            return
        with contextlib.suppress(FileNotFoundError):
            self._closing.touch()  # boots that have not begun give up instead of keeping the lock busy
        with self._locked(exclusive=True):
            self._clear()
            self._lock.unlink()

    def is_open(self) -> bool:
        return self._settings() is not None and self.fabric.exists()

    def listen(self, address: str, port: int) -> socket.socket:
        return self.fabric.listen(address, port)

    def stream(self) -> socket.socket:
        return self.fabric.stream()

    def route(self, network: str, *, via: str) -> None:
        """Route ``network`` to the node at ``via``; other nodes use their default route."""
        self.fabric.route(network, via=via)

    def pinger(self) -> socket.socket:
        return self.fabric.pinger()

    def _locked(self, *, exclusive: bool) -> "contextlib.AbstractContextManager[int]":
        return locked(self._lock, exclusive=exclusive, timeout_s=_LOCK_TIMEOUT_S)

    def _serve_kernel_logs(self) -> bool:
        try:
            return self.kernel_logs.start()
        except KernelLogError as error:
            raise NodeError(str(error)) from None

    def restore_kernel_logs(self) -> None:
        """Serve kernel logs after their process was killed, without earlier records. Raise NodeError."""
        with self._locked(exclusive=False):
            if self._settings() is None or self._closing.exists():
                return
            self._serve_kernel_logs()
            self._give_kernel_logs()

    def _give_kernel_logs(self) -> None:
        problems = []
        for node in self.nodes():
            with locked(self.directory / node.spec.instance_id / "lock", exclusive=True, timeout_s=BOOT_TIMEOUT_S):
                try:
                    if node.alive() and node.spec.instance_id not in self.kernel_logs.names():
                        give_kernel_log(node.spec.instance_id, pid=node.pid, logs=self.kernel_logs)
                except (NodeError, KernelLogError) as error:
                    problems.append(str(error))
        if problems:
            raise NodeError("; ".join(problems))

    def _settings(self) -> Network | None:
        try:
            document = json.loads(self._settings_file.read_text())
        except FileNotFoundError:
            return None
        return _parse(network=document["network"], gateway=document["gateway"])

    def _clear(self) -> None:
        self.kernel_logs.stop()
        for node in self.nodes():
            node.kill()
        deadline = time.monotonic() + _KILL_TIMEOUT_S
        while strays := proc.users_of_overlays_below(self.directory):
            if time.monotonic() > deadline:
                raise NodeError(f"processes {strays} of nodes below {self.directory} survived SIGKILL")
            for pid in strays:
                if (ticks := proc.start_ticks(pid)) is not None:
                    proc.kill(pid=pid, ticks=ticks, timeout_s=1.0)
        cgroups.close(home=self.home)
        self.fabric.remove()
        while self.directory.is_mount():
            _unmount(self.directory)
        remove_tree_quietly(self.directory)

    # --- single nodes

    def nodes(self) -> list[Node]:
        found = []
        for path in self.directory.glob("*/node.json"):
            with contextlib.suppress(FileNotFoundError):
                found.append(self._node(NodeRecord.from_json(path.read_text())))
        return sorted(found, key=lambda node: ipaddress.IPv4Address(node.spec.address))

    def node(self, name: str) -> Node:
        nodes = self.nodes()
        matches = [n for n in nodes if name in (n.spec.instance_id, n.spec.hostname, n.spec.address)]
        if not matches:
            names = ", ".join(f"{n.spec.instance_id} ({n.spec.hostname})" for n in nodes) or "none is booted"
            raise NodeError(f"no node {name!r}; nodes: {names}")
        return max(matches, key=lambda n: n.alive())

    def boot(self, spec: NodeSpec, *, keep_root: bool = False) -> Node:
        """Boot a node; return when its PID 1 runs. ``keep_root``: with the root of the dead node of this id."""
        with self._locked(exclusive=False) as lock:
            settings = self._require_open(spec)
            if self._serve_kernel_logs():
                self._give_kernel_logs()
            directory = self.directory / spec.instance_id
            if keep_root and not (directory / "node.json").exists():
                raise NodeError(f"{spec.instance_id}: no earlier root to keep; boot it with a fresh one")
            directory.mkdir(exist_ok=True)
            with locked(directory / "lock", exclusive=True, timeout_s=BOOT_TIMEOUT_S):
                self._make_room(directory, spec=spec, keep_root=keep_root)
                try:
                    record = start(
                        spec,
                        directory=directory,
                        fabric=self.fabric,
                        network=settings,
                        home=self.home,
                        kept=keep_root,
                        lock=lock,
                    )
                except BaseException:
                    # The kernel takes a dead node's cable away a little later; a retry would find the name in use.
                    self.fabric.delete_link(link_name(spec.instance_id))
                    cgroups.remove(home=self.home, instance_id=spec.instance_id)
                    if not keep_root:
                        remove_tree_quietly(directory)
                    raise
                return self._node(record)

    def _require_open(self, spec: NodeSpec) -> Network:
        settings = self._settings()
        if settings is None or not self.fabric.exists():
            raise NodeError(f"no network for nodes below {self.home}; open the fleet first")
        if self._closing.exists():
            raise NodeError(f"the fleet below {self.home} is being closed")
        if ipaddress.IPv4Address(spec.address) not in settings.network or spec.address == str(settings.gateway):
            raise NodeError(
                f"{spec.instance_id}: address must be in {settings.network} and not the gateway {settings.gateway}, "
                f"got {spec.address}"
            )
        for node in self.nodes():
            other = node.spec
            same_place = other.instance_id == spec.instance_id or other.address == spec.address
            if same_place and node.alive():
                raise NodeError(
                    f"{spec.instance_id}: {other.instance_id} already runs at {other.address}; destroy it first"
                )
        return settings

    def _make_room(self, directory: Path, *, spec: NodeSpec, keep_root: bool) -> None:
        record = directory / "node.json"
        if record.exists() and self._node(NodeRecord.from_json(record.read_text())).alive():
            raise NodeError(f"{spec.instance_id}: already runs at {spec.address}; destroy it first")
        if not keep_root:
            record.unlink(missing_ok=True)
        if (directory / "layers").exists():
            self.fabric.delete_link(link_name(spec.instance_id))
            if not keep_root:
                remove_tree(directory / "layers")

    def _node(self, record: NodeRecord) -> Node:
        directory = self.directory / record.spec.instance_id
        return Node(record=record, directory=directory, fabric=self.fabric, home=self.home)


def _parse(*, network: str, gateway: str) -> Network:
    try:
        parsed = Network(network=ipaddress.IPv4Network(network), gateway=ipaddress.IPv4Address(gateway))
    except ValueError as error:
        raise NodeError(f"network must be like 10.1.0.0/16 and gateway an address in it: {error}") from error
    if parsed.gateway not in parsed.network:
        raise NodeError(f"gateway must be in {network}, got {gateway}")
    return parsed


def _unmount(path: Path) -> None:
    for _ in range(50):
        try:
            boot_module.umount(str(path))
        except OSError:  # noqa: PERF203
            time.sleep(0.02)
        else:
            return
    boot_module.umount(str(path), flags=boot_module.MNT_DETACH)
