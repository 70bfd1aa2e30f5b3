"""Control plane of one cluster: a virtual instance with real programs, which outlives the process that started it."""

import contextlib
import ipaddress
import json
import logging
import socket
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

from holdfast.localcloud.forwarding import Forwarder
from holdfast.localcloud.home import remove_tree
from holdfast.localcloud.kubernetes.binaries import Binaries
from holdfast.localcloud.kubernetes.control import components
from holdfast.localcloud.kubernetes.control.administrator import client_of
from holdfast.localcloud.kubernetes.control.components import FOLDER, KEYS, Program, Settings
from holdfast.localcloud.kubernetes.control.keys import Authority, Pair, kubeconfig
from holdfast.localcloud.kubernetes.model import LOOPBACK, EksCluster
from holdfast.localcloud.nodes import FileSpec, Fleet, Mount, Node, NodeError, NodeSpec, ProgramQuery, census
from holdfast.localcloud.roster import LOOP, Place, at
from holdfast.localcloud.supervision import Worker

READY_WITHIN_S = 180.0
POLL_S = 0.1
COMMAND_TIMEOUT_S = 30.0
LARGEST_LOG_BYTES = 64 << 20
GARBAGE_PERCENT = "40"
"""Less than half of Go's own: a third less memory for a little more work."""
ADMINISTRATOR = "eks:cluster-bootstrap"
"""EKS's own user in a cluster."""
WEBHOOK_CLIENT = "kube-apiserver"
"""Common name of the API server's client certificate for webhooks."""
_RESPAWN = Path(__file__).with_name("respawn.sh")
_TOOLS = "/opt/kube/tools"

_END_STALLED = """
stopped=$(pgrep --runstates T,t --full "$1" || true)
if [ -z "$stopped" ]; then stopped=$(pgrep --full "$1(hyperkube )?kube-apiserver" || true); fi
for pid in $stopped; do kill -KILL "$pid"; done
"""

_END_LOOP = 'pkill -KILL --full "$1" || true'

_TURN_OVER = 'cp "$1" "$1.new" && mv "$1.new" "$1.1"; : > "$1"'

_QUERIES = tuple(ProgramQuery(name=one.name, shown=one.shown, marks=one.marks) for one in at(Place.CONTROL_PLANE))
_PROGRAMS = tuple(one for one in _QUERIES if not one.name.endswith(LOOP))
_LOOPS = tuple(one for one in _QUERIES if one.name.endswith(LOOP))

_log = logging.getLogger(__name__)


class ControlPlane:
    """
    Not thread-safe.

    Args:
        directory: Persistent data: keys, etcd, the port on the machine.
        access: Flags of the API server for authentication and authorization.
        documents: Path on the instance to content, for those flags.
    """

    def __init__(
        self,
        cluster: EksCluster,
        *,
        directory: Path,
        fleet: Fleet,
        binaries: Binaries,
        network: str,
        access: Sequence[str] = (),
        documents: Mapping[str, bytes] | None = None,
    ) -> None:
        self.cluster = cluster
        self._directory, self._fleet, self._binaries = directory, fleet, binaries
        self._documents = dict(documents or {})
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.authority = Authority(directory / "pki")
        listener, address = self._place(network)
        self.settings = Settings(
            address=address,
            port=listener.getsockname()[1],
            services=cluster.services,
            issuer=cluster.issuer,
            access=tuple(access),
        )
        self._forwarder = Forwarder(listener=listener, host=address, port=self.settings.port, stream=self._fleet.stream)
        self._forwarder.start()
        self.api = client_of(self.authority, endpoint=self.endpoint, user=ADMINISTRATOR)

    @property
    def endpoint(self) -> str:
        return f"{LOOPBACK}{self.settings.port}"

    @property
    def node(self) -> Node | None:
        with contextlib.suppress(NodeError):
            found = self._fleet.node(self.cluster.key)
            return found if found.alive() else None
        return None

    @property
    def is_started(self) -> bool:
        node = self.node
        return node is not None and node.inside("/run/kube/second").exists()

    @property
    def worker(self) -> Worker:
        return self._forwarder.worker

    def start(self, *, on_boot: Callable[[Node], None], is_over: Callable[[], bool]) -> None:
        """
        Start all that does not run, and wait until the API server is ready.

        Args:
            on_boot: Called with the running instance before its programs start.

        Raises:
            NodeError: not ready within 180 s, or start failed; the message has the end of the log.
        """
        node = self.node
        if node is None:
            node = self._boot()
        on_boot(node)
        first, second = self._programs()
        self._run(node, first, stage="first")
        deadline = time.monotonic() + READY_WITHIN_S
        while not self.api.is_ready():
            if is_over() or time.monotonic() > deadline or not node.alive():
                raise NodeError(f"the API server of {self.cluster.name} is not ready: {self._last_words(node)}")
            time.sleep(POLL_S)
        self._run(node, second, stage="second")

    def stopped_programs(self) -> list[str]:
        node = self.node
        if node is None:
            return []
        found = census([node], sought=_PROGRAMS).get(node.spec.instance_id, {})
        return sorted(name for name, state in found.items() if state in ("T", "t"))

    def restart_loops(self) -> list[str]:
        """Restart programs whose loop exited or is stopped; return their names. Raise NodeError or OSError."""
        node = self.node
        if node is None or not self.is_started:
            return []
        found = census([node], sought=_LOOPS).get(node.spec.instance_id)
        if found is None:
            return []
        first, second = self._programs()
        lost = [one for one in (*first, *second) if found.get(f"{one.name}{LOOP}", "T") in ("T", "t")]
        for program in lost:
            pattern = f"^(/bin/sh /run/kube/respawn |{_TOOLS}/(hyperkube )?){program.name} "
            node.run(["/bin/sh", "-c", _END_LOOP, "end_loop", pattern], timeout_s=COMMAND_TIMEOUT_S)
            self._loop(node, program)
        return [program.name for program in lost]

    def restart_stalled(self) -> None:
        """Kill stopped programs, or else the API server; all are restarted. Exited programs restart by themselves."""
        node = self.node
        if node is not None:
            node.run(["/bin/sh", "-c", _END_STALLED, "restart_stalled", f"^{_TOOLS}/"], timeout_s=COMMAND_TIMEOUT_S)

    def bound_logs(self) -> None:
        """Move full logs of programs to NAME.log.1: requests of pods cause lines, and may be many."""
        node = self.node
        if node is None:
            return
        for log in (f"/var/log/kube/{one.name}.log" for one in _PROGRAMS):
            with contextlib.suppress(OSError):
                if node.inside(log).stat().st_size >= LARGEST_LOG_BYTES:
                    node.run(["/bin/sh", "-c", _TURN_OVER, "turn_over", log], timeout_s=COMMAND_TIMEOUT_S)

    def stop(self) -> None:
        """Stop forwarding from this machine; programs keep running."""
        self._forwarder.stop()

    def destroy(self) -> None:
        self.stop()
        erase(self.cluster.key, fleet=self._fleet, directory=self._directory)

    def _place(self, network: str) -> tuple[socket.socket, str]:
        """Return a listening socket of the machine and an address among the nodes; the previous ones if free."""
        record = self._directory / "place.json"
        port, address = 0, ""
        if record.exists():
            known = json.loads(record.read_text())
            port, address = known["port"], known["address"]
        if not address:
            taken = {node.spec.address for node in self._fleet.nodes()}
            block = ipaddress.ip_network(network)
            # From the end, where EC2 has given out nothing yet.
            address = next(one for n in range(2, 250) if (one := str(block[-n])) not in taken)
        listener = _listen(port)
        record.write_text(json.dumps({"port": listener.getsockname()[1], "address": address}))
        return listener, address

    def _boot(self) -> Node:
        data = self._directory / "etcd"
        data.mkdir(mode=0o700, exist_ok=True)
        spec = NodeSpec(
            instance_id=self.cluster.key,
            hostname=self.cluster.key,
            address=self.settings.address,
            mounts=(
                Mount(source=self._binaries.directory, target=_TOOLS, read_only=True),
                Mount(source=data, target=components.ETCD_DATA),
            ),
            files=self._files(),
        )
        node = self._fleet.boot(spec)
        node.configure_network(
            f"route add {self.settings.services} dev eth0",
            settings={
                "ipv4/ip_forward": "1",
                "ipv4/conf/all/route_localnet": "1",
                "ipv4/conf/all/send_redirects": "0",
                "ipv4/conf/eth0/send_redirects": "0",
            },
        )
        self._fleet.route(self.settings.services, via=self.settings.address)
        return node

    def _programs(self) -> tuple[list[Program], list[Program]]:
        tools = Path(_TOOLS)
        every = components.programs(
            self.settings,
            argv=partial(self._binaries.argv, directory=tools),
            flags=self._binaries.flags,
            etcd=str(tools / self._binaries.etcd.name),
        )
        return [one for one in every if not one.after_ready], [one for one in every if one.after_ready]

    def _run(self, node: Node, programs: list[Program], *, stage: str) -> None:
        """Start programs once per boot of the instance."""
        if node.inside(f"/run/kube/{stage}").exists():
            return
        for program in programs:
            self._loop(node, program)
        node.write_file(f"/run/kube/{stage}", b"")

    @staticmethod
    def _loop(node: Node, program: Program) -> None:
        node.popen(
            ["setsid", "--fork", "/bin/sh", "/run/kube/respawn", program.name, *program.argv],
            env={"GOMAXPROCS": "2", "GOGC": GARBAGE_PERCENT},
        ).wait(COMMAND_TIMEOUT_S)

    def _files(self) -> dict[str, FileSpec]:
        settings, authority = self.settings, self.authority
        names = ("", ".default", ".default.svc", ".default.svc.cluster.local")
        server = authority.server(
            "kube-apiserver",
            names=["localhost", *(f"kubernetes{end}" for end in names)],
            addresses=["127.0.0.1", settings.address, settings.service_address],
        )
        clients = {
            "controller-manager": ("system:kube-controller-manager", ()),
            "scheduler": ("system:kube-scheduler", ()),
            "proxy": ("system:kube-proxy", ("system:node-proxier",)),
        }
        private = {
            f"{KEYS}/ca.crt": authority.certificate,
            f"{KEYS}/ca.key": authority.key,
            f"{KEYS}/sa.key": authority.token_key,
            **_pair("server", server),
            **_pair("kubelet-client", authority.client("kube-apiserver-kubelet-client", groups=["system:masters"])),
            **_pair("front-proxy", authority.client("front-proxy-client")),
            **{
                f"{FOLDER}/{name}.kubeconfig": kubeconfig(
                    server=settings.url, authority=authority, pair=authority.client(user, groups=groups)
                )
                for name, (user, groups) in clients.items()
            },
            **_pair("webhook", authority.client(WEBHOOK_CLIENT)),
            **self._documents,
            f"{FOLDER}/proxy.json": components.proxy_configuration(settings),
            "/run/kube/respawn": _RESPAWN.read_bytes(),
            "/var/log/kube/.made": b"",
        }
        return {path: FileSpec(content=content, mode=0o600) for path, content in private.items()}

    def _last_words(self, node: Node) -> str:
        with contextlib.suppress(OSError):
            lines = node.read_file("/var/log/kube/kube-apiserver.log").decode(errors="replace").strip().splitlines()
            return " | ".join(lines[-3:])[-700:]
        return "its log is empty"


def erase(key: str, *, fleet: Fleet, directory: Path) -> None:
    with contextlib.suppress(NodeError):
        fleet.node(key).remove()
    if directory.exists():
        remove_tree(directory)


def _pair(name: str, pair: Pair) -> dict[str, bytes]:
    return {f"{KEYS}/{name}.crt": pair.certificate, f"{KEYS}/{name}.key": pair.key}


def _listen(port: int) -> socket.socket:
    with contextlib.suppress(OSError):
        return socket.create_server(("127.0.0.1", port))
    return socket.create_server(("127.0.0.1", 0))
