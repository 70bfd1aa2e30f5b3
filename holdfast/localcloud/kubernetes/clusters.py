"""Real EKS clusters of one home: start, find and end control planes, join nodes."""

import logging
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from holdfast.localcloud.containers import ImageStore
from holdfast.localcloud.forwarding import AWS_PORT
from holdfast.localcloud.home import remove_tree_quietly
from holdfast.localcloud.kubernetes.binaries import Binaries, BinariesError
from holdfast.localcloud.kubernetes.control import ControlPlane, Keeper, erase
from holdfast.localcloud.kubernetes.images import PORT as REGISTRY_PORT
from holdfast.localcloud.kubernetes.model import EksCluster, Object
from holdfast.localcloud.kubernetes.nodes import (
    CHECK_FAILED,
    CHECK_TAINT,
    DEEP_CHECK_LABEL,
    HEALTH_LABEL,
    IN_PROGRESS,
    PASSED,
    PENDING_REPLACEMENT,
    SCHEDULABLE,
    UNSCHEDULABLE,
    Member,
    Parts,
    Roster,
    health,
    is_ready,
    last_complaint,
    node_name,
    parts,
    start_services,
)
from holdfast.localcloud.kubernetes.serving import AccessService, Account, SharedServices, api_server_side, node_root
from holdfast.localcloud.nodes import Fleet, Node, NodeError
from holdfast.localcloud.supervision import Worker, together
from holdfast_common import KubernetesClient, KubernetesError

NODES = "/api/v1/nodes"
JOINS_WITHIN_S, CLEARED_WITHIN_S = 120.0, 10.0
KUBELET_LOG = "/var/log/holdfast/units/kubelet.service.log"
AGAIN_AFTER_S = 5.0

_log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class ClusterState:
    arn: str
    status: str
    """ACTIVE, FAILED or Deleted."""
    endpoint: str = ""
    authority: str = ""
    """Base64 of its certificate."""
    runs: str = ""
    """The version of Kubernetes that runs; empty where none does."""
    message: str = ""


@dataclass(kw_only=True)
class _Running:
    plane: ControlPlane
    roster: Roster
    access: AccessService


class Clusters:
    """
    Thread-safe.

    Args:
        binaries: Called for each cluster start; returns None without binaries.
        tell: Records the state of a cluster.
        on_change: Called when a node has changed.
    """

    def __init__(
        self,
        *,
        home: Path,
        fleet: Fleet,
        account: Account,
        binaries: Callable[[], Binaries | None],
        tell: Callable[[ClusterState], None],
        on_change: Callable[[], None],
    ) -> None:
        self._fleet, self._account, self._binaries = fleet, account, binaries
        self._store = ImageStore(home=home)
        self._commons = SharedServices(home=home, fleet=fleet, account=account)
        self._directory = home / "kubernetes"
        self._tell, self._on_change = tell, on_change
        self._lock = threading.Lock()
        self._running: dict[str, _Running] = {}
        self._rests_until: dict[str, float] = {}
        self._reported = self._gateway = ""
        self._stopping = threading.Event()
        self._keeper = Keeper(planes=self._planes)

    def offers(self) -> str:
        """Return the version of Kubernetes for new clusters; empty: clusters are records only."""
        found = self._present()
        return found.version if found else ""

    def _present(self) -> Binaries | None:
        try:
            return self._binaries()
        except BinariesError as error:
            if str(error) != self._reported:
                _log.error("%s", error)
            self._reported = str(error)
            return None

    def due(
        self, clusters: Iterable[EksCluster], *, network: str, gateway: str, busy: frozenset[str]
    ) -> list[tuple[str, Callable[[], None]]]:
        """Return pending work by the key of its cluster, except for ``busy`` ones."""
        known = {cluster.key: cluster for cluster in clusters}
        work: list[tuple[str, Callable[[], None]]] = []
        for key, cluster in known.items():
            if key in busy or self._rests_until.get(key, 0.0) > time.monotonic():
                continue
            if cluster.status == "DELETING" and (cluster.is_real or key in self._running):
                work.append((key, partial(self._delete, cluster)))
            elif cluster.is_real and cluster.status in ("CREATING", "ACTIVE", "UPDATING") and not self._is_up(key):
                work.append((key, partial(self._start, cluster, network=network, gateway=gateway)))
        gone = [key for key in self._running if key not in known and key not in busy]
        return work + [(key, partial(self._forget, key)) for key in gone]

    def keys(self) -> frozenset[str]:
        with self._lock:
            return frozenset(self._running)

    def start(self) -> None:
        self._keeper.start()

    def workers(self) -> list[Worker]:
        with self._lock:
            running = list(self._running.values())
        own = [w for one in running for w in (one.plane.worker, one.roster.worker, *one.access.workers())]
        return [self._keeper.worker, *own, *self._commons.workers()]

    def stop(self) -> None:
        """Stop serving; clusters keep running."""
        self._stopping.set()
        self._keeper.stop()
        with self._lock:
            running = list(self._running.values())
        for one in running:
            one.roster.stop()
        # A server takes half a second to end.
        together(self._commons.stop, *(part.stop for one in running for part in (one.access, one.plane)))

    # --- nodes

    def has(self, arn: str) -> bool:
        return self._find(arn) is not None

    def api(self, arn: str) -> KubernetesClient | None:
        found = self._find(arn)
        return found.plane.api if found else None

    def parts(self, arn: str, member: Member) -> Parts:
        """Return the boot configuration of an instance's node. Raises: NodeError: the cluster does not run."""
        running = self._must(arn)
        binaries = self._present()
        if binaries is None:
            raise NodeError("Kubernetes binaries not found; run: holdfast kubernetes build")
        return parts(
            member,
            settings=running.plane.settings,
            authority=running.plane.authority,
            binaries=binaries,
            store=self._store,
            registry=f"{self._gateway}:{REGISTRY_PORT}",
            root=node_root(),
            directory=self._directory,
            disks=self._disks(member.instance_id),
        )

    def join(self, arn: str, node: Node, *, is_over: Callable[[], bool]) -> None:
        """Start containerd and the kubelet, and wait until the Node is ready. Raises: NodeError: not within 120 s."""
        running = self._must(arn)
        roster, name = running.roster, node_name(node.spec.instance_id)
        before = roster.heartbeat(name)
        start_services(node)
        if not roster.wait(name, partial(is_ready, after=before), timeout_s=JOINS_WITHIN_S, is_over=is_over):
            log = node.read_file(KUBELET_LOG) if node.alive() else b""
            raise NodeError(
                f"node {name} was not ready in Kubernetes within {JOINS_WITHIN_S:g} s: {last_complaint(log)}"
            )
        self._clear_health(running, name, is_over=is_over)

    def _clear_health(self, running: _Running, name: str, *, is_over: Callable[[], bool]) -> None:
        """Reset the label that requested a reboot, and wait until the roster has the change."""
        try:
            if health(running.roster.nodes()[name]) != SCHEDULABLE:
                running.plane.api.patch(f"{NODES}/{name}", {"metadata": {"labels": {HEALTH_LABEL: SCHEDULABLE}}})
                cleared = _is_schedulable
                running.roster.wait(name, cleared, timeout_s=CLEARED_WITHIN_S, is_over=is_over)
        except (KeyError, KubernetesError) as error:
            raise NodeError(f"node {name}: health label not reset: {error}") from None

    def start_check(self, arn: str, instance_id: str) -> None:
        """Label and taint the Node for deep health checks. No effect on a cluster that is a record."""
        self._set_check(arn, instance_id, label=UNSCHEDULABLE, check=IN_PROGRESS, tainted=True)

    def end_check(self, arn: str, instance_id: str, *, passed: bool) -> None:
        """Label the Node with the result; a failed one stays tainted and pending replacement."""
        if passed:
            self._set_check(arn, instance_id, label=SCHEDULABLE, check=PASSED, tainted=False)
        else:
            self._set_check(arn, instance_id, label=PENDING_REPLACEMENT, check=CHECK_FAILED, tainted=True)

    def _set_check(self, arn: str, instance_id: str, *, label: str, check: str, tainted: bool) -> None:
        running = self._find(arn)
        if running is None:
            return
        path = f"{NODES}/{node_name(instance_id)}"
        try:
            taints = running.plane.api.get(path)["spec"].get("taints", [])
            others = [
                one for one in taints if (one["key"], one["effect"]) != (CHECK_TAINT["key"], CHECK_TAINT["effect"])
            ]
            body = {
                "metadata": {"labels": {HEALTH_LABEL: label, DEEP_CHECK_LABEL: check}},
                "spec": {"taints": [*others, *([dict(CHECK_TAINT)] if tainted else [])]},
            }
            running.plane.api.patch(path, body)
        except KubernetesError as error:
            raise NodeError(f"node of {instance_id}: deep health check not recorded: {error}") from None

    def leave(self, arn: str, instance_id: str) -> None:
        running = self._find(arn)
        if running is not None:
            try:
                running.plane.api.delete(f"{NODES}/{node_name(instance_id)}")
            except KubernetesError as error:
                _log.warning("node of %s: not deleted: %s", instance_id, error)

    def drop_disks(self, instance_id: str) -> None:
        remove_tree_quietly(self._disks(instance_id))

    def requested(self, arn: str) -> dict[str, str]:
        """Return instance id -> reboot or replace, from the Nodes' labels."""
        found = self._find(arn)
        return found.roster.requested() if found else {}

    # --- control planes

    def _planes(self) -> list[ControlPlane]:
        with self._lock:
            return [one.plane for one in self._running.values()]

    def _start(self, cluster: EksCluster, *, network: str, gateway: str) -> None:
        binaries = self._present()
        if binaries is None:
            self._tell(ClusterState(arn=cluster.arn, status="ACTIVE"))
            return
        with self._lock:
            running = self._running.get(cluster.key)
        try:
            if running is None:
                running = self._prepare(cluster, binaries=binaries, network=network, gateway=gateway)
            running.plane.start(on_boot=running.access.serve, is_over=self._stopping.is_set)
            running.access.announce()
            self._commons.serve(gateway=gateway, cluster_name=cluster.name, api=running.plane.api)
        except (NodeError, KubernetesError, OSError) as error:
            self._rests_until[cluster.key] = time.monotonic() + AGAIN_AFTER_S
            _log.error("EKS cluster %s: start failed: %s", cluster.name, error)
            if cluster.status == "CREATING" and not self._stopping.is_set():
                self._tell(ClusterState(arn=cluster.arn, status="FAILED", message=str(error)))
            return
        endpoint = running.plane.endpoint
        if (cluster.status, cluster.endpoint) != ("ACTIVE", endpoint):
            authority = running.plane.authority.data
            made = ClusterState(
                arn=cluster.arn, status="ACTIVE", endpoint=endpoint, authority=authority, runs=binaries.version
            )
            self._tell(made)

    def _prepare(self, cluster: EksCluster, *, binaries: Binaries, network: str, gateway: str) -> _Running:
        self._gateway = gateway
        side = api_server_side()
        directory = self._directory / cluster.key
        plane = ControlPlane(
            cluster,
            directory=directory,
            fleet=self._fleet,
            binaries=binaries,
            network=network,
            access=side.flags(),
            documents={f"{side.directory}/{name}": text.encode() for name, text in side.documents().items()},
        )
        access = AccessService(
            cluster_name=cluster.name,
            authority=plane.authority,
            account=self._account,
            directory=directory / "access",
            nodes_endpoint=f"http://{gateway}:{AWS_PORT}",
            api=plane.api,
        )
        route = self._fleet.route
        roster = Roster(api=plane.api, route=lambda pods, address: route(pods, via=address), on_change=self._on_change)
        roster.start()
        running = _Running(plane=plane, roster=roster, access=access)
        with self._lock:
            self._running[cluster.key] = running
        return running

    def _is_up(self, key: str) -> bool:
        running = self._running.get(key)
        return running is not None and running.plane.is_started

    def _delete(self, cluster: EksCluster) -> None:
        self._forget(cluster.key)
        erase(cluster.key, fleet=self._fleet, directory=self._directory / cluster.key)
        self._tell(ClusterState(arn=cluster.arn, status="Deleted"))

    def _forget(self, key: str) -> None:
        with self._lock:
            running = self._running.pop(key, None)
        if running is not None:
            running.roster.stop()
            running.access.stop()
            running.plane.destroy()
            with self._lock:
                is_last = not self._running
            if is_last:
                self._commons.stop()

    def _find(self, arn: str) -> _Running | None:
        with self._lock:
            return next((one for one in self._running.values() if one.plane.cluster.arn == arn), None)

    def _must(self, arn: str) -> _Running:
        found = self._find(arn)
        if found is None:
            raise NodeError(f"the control plane of {arn} does not run on this machine")
        return found

    def _disks(self, instance_id: str) -> Path:
        return self._directory / "volumes" / instance_id


def _is_schedulable(node: Object) -> bool:
    return health(node) == SCHEDULABLE
