"""
The control loop: observe, decide, execute, again, whenever something changed.

Everything that takes time happens in threads; the loop itself only looks and decides, so a hanging lifecycle script or
a slow boot never delays the replacement of another instance.
"""

import ipaddress
import logging
import threading
import time
import urllib.error
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit

from botocore.exceptions import BotoCoreError, ClientError

from holdfast.localcloud import auto_resume, containers
from holdfast.localcloud.home import keys_of
from holdfast.localcloud.hyperpod.api import Aws, Plane, Report, RoleSessions, Waker
from holdfast.localcloud.hyperpod.control import reconcile
from holdfast.localcloud.hyperpod.control.health import Watch
from holdfast.localcloud.hyperpod.control.reconcile import Action, Health, Observed
from holdfast.localcloud.hyperpod.fsx import Storage
from holdfast.localcloud.hyperpod.instances import TRAINING_ENVIRONMENT, Members, Procedure
from holdfast.localcloud.hyperpod.lifecycle import TIMEOUT_S, Bundles, instance_metadata
from holdfast.localcloud.hyperpod.logs import EventSink, LogShipper, Tailer
from holdfast.localcloud.hyperpod.model import (
    CONTROLLER,
    FAILED,
    FAILURE,
    IN_SERVICE,
    ROLLING_BACK,
    RUNNING,
    Cluster,
    Instance,
)
from holdfast.localcloud.hyperpod.network import PORT as METADATA_PORT
from holdfast.localcloud.hyperpod.network import Forwarder, Item, Metadata, Reach
from holdfast.localcloud.hyperpod.shared import EMBEDDED_PORT, Memory, Tools
from holdfast.localcloud.hyperpod.slurm import FORM_TIMEOUT_S, Accounting
from holdfast.localcloud.hyperpod.upkeep import Kept, Upkeep
from holdfast.localcloud.image import environment_programs
from holdfast.localcloud.nodes import METADATA_ADDRESS, Fleet, Node, NodeError
from holdfast.localcloud.supervision import Complaints, Pass, Passes, Worker, passes_path
from holdfast_common import kinds

IDLE_S = 1.0
REFRESH_S = 5.0
LATE_AFTER_S = 30.0
HYPERPOD = "hyperpod"
THREADS = 80

_log = logging.getLogger(__name__)

_ANNOUNCED = {
    "Creating": kinds.CLUSTER_CREATING,
    "Updating": kinds.CLUSTER_UPDATING,
    "Deleting": kinds.CLUSTER_DELETING,
}
_UNREACHABLE = (ClientError, BotoCoreError, urllib.error.URLError, OSError, ValueError)


class ControlPlane:
    """
    The HyperPod service of one home.

    Args:
        endpoint: Of the embedded AWS.
        lifecycle_timeout_s: Bound on a lifecycle script. Default: 600 s.
        node_line_delay_s: Between the script of a node that joins a running cluster and its line in slurm.conf; on AWS
            it can be minutes. Default: 0 s.
        form_timeout_s: How long instances wait for Slurm's controller, "the expected time" that AWS does not name.
            Default: 40 s.
    """

    def __init__(
        self,
        *,
        home: Path,
        endpoint: str,
        region: str,
        lifecycle_timeout_s: float = TIMEOUT_S,
        node_line_delay_s: float = 0.0,
        form_timeout_s: float = FORM_TIMEOUT_S,
    ) -> None:
        self._home = home
        self._endpoint = endpoint
        self._waker = Waker()
        self._stopping = threading.Event()
        self._pool = ThreadPoolExecutor(max_workers=THREADS, thread_name_prefix="work")
        self._busy_lock = threading.Lock()
        self._busy: dict[str, str] = {}
        """Instance id -> ARN of its cluster."""
        self._failed_at: dict[str, float] = {}
        """Instance id -> when it was seen to have failed."""
        self._stale = True
        self._refreshed = 0.0
        self._clusters: list[Cluster] = []
        self._requests: dict[str, str] = {}
        self._forwarder: Forwarder | None = None
        self._metadata: Metadata | None = None
        self._region, self._zone = region, ""
        keys = keys_of(home)
        aws = Aws(endpoint=endpoint, region=region, keys=keys)
        self._sessions = RoleSessions(sts=aws.sts)
        shipper = LogShipper(logs=aws.logs)
        self._tools = Tools(
            home=home,
            fleet=Fleet(home=home),
            aws=aws,
            plane=Plane(endpoint=endpoint, region=region, keys=keys),
            events=EventSink(shipper=shipper),
            tailer=Tailer(shipper=shipper),
            shipper=shipper,
            memory=Memory(path=home / "hyperpod" / "memory.json"),
            bundles=Bundles(s3=aws.s3, directory=home / "hyperpod" / "bundles"),
            accounting=Accounting(directory=home / "hyperpod" / "accounting"),
            lifecycle_timeout_s=lifecycle_timeout_s,
            node_line_delay_s=node_line_delay_s,
            region=region,
            form_timeout_s=form_timeout_s,
            containers=containers.prepare(home=home),
            auto_resume=auto_resume.prepare(home=home),
            programs=environment_programs(home / "hyperpod" / "programs", at=TRAINING_ENVIRONMENT),
        )
        self._watch = Watch(on_change=self._waker.wake)
        self._reach = Reach(on_change=self._waker.wake)
        self._members = Members(tools=self._tools, pool=self._pool, on_done=self._changed)
        self._storage = Storage(tools=self._tools, clusters=lambda: self._clusters)
        self._upkeep = Upkeep(kept=self._in_service, events=self._tools.events, pool=self._pool)
        self._complaints = Complaints(log=_log, what="control loop", again_after_s=0.0)
        self._looped_at = time.monotonic()
        self._service = Worker(name="service", work=self._watch_service, stopping=self._stopping)
        self._passes = Passes(path=passes_path(home, HYPERPOD), told=self._told)

    def run(self, *, on_ready: Callable[[], None] = lambda: None) -> None:
        """Work until ``stop`` is called from another thread or a signal handler. Nodes keep running afterwards."""
        self._tools.shipper.start()
        self._tools.tailer.start()
        self._watch.start()
        self._service.start()
        self._storage.start()
        self._upkeep.start()
        self._tools.accounting.prepare()
        self._tools.prepare_image()
        self._passes.start()
        on_ready()
        try:
            while not self._stopping.is_set():
                began = time.monotonic()
                self._complaints.guard("all clusters", self._step)
                self._looped_at = time.monotonic()
                # A storm of changes is looked at now and then, and leaves the machine to those who cause it.
                self._stopping.wait(time.monotonic() - began)
                self._waker.wait(timeout_s=IDLE_S)
        finally:
            self._close()

    def stop(self) -> None:
        """Make ``run`` return soon. Work on single instances is left where it is and taken up by the next process."""
        self._stopping.set()
        self._waker.wake()

    def _close(self) -> None:
        self._stopping.set()
        self._passes.stop()
        self._upkeep.stop()
        self._storage.stop()
        self._pool.shutdown(wait=False, cancel_futures=True)
        deadline = time.monotonic() + 3.0
        while self._busy and time.monotonic() < deadline:
            time.sleep(0.05)
        self._watch.stop()
        self._reach.stop()
        if self._forwarder:
            self._forwarder.stop()
        if self._metadata:
            self._metadata.stop()
        self._tools.tailer.stop()
        self._tools.shipper.stop()

    # --- observing

    def _watch_service(self) -> None:
        version = 0
        while not self._stopping.is_set():
            try:
                seen = self._tools.plane.watch(version=version)
            except _UNREACHABLE:
                self._sessions.forget()
                self._stopping.wait(0.3)
                continue
            self._service.passed()
            if seen != version:
                version = seen
                self._changed()

    def _changed(self) -> None:
        self._stale = True
        self._waker.wake()

    def _step(self) -> None:
        # Before the service is asked: what was busy then may have ended since, and the answer not know of it.
        with self._busy_lock:
            busy = frozenset(self._busy)
        if self._stale or time.monotonic() - self._refreshed > REFRESH_S:
            self._stale = False
            try:
                self._refresh()
            except _UNREACHABLE as error:
                _log.warning("the embedded AWS at %s does not answer as expected: %s", self._endpoint, error)
                self._stale = True
                return
        nodes = {node.spec.instance_id: node for node in self._tools.fleet.nodes()}
        self._watch.follow(nodes.values())
        self._reach.follow(node for node in nodes.values() if node.alive())
        for cluster in self._clusters:
            attend = partial(self._attend, cluster, nodes=nodes, busy=busy)
            self._complaints.guard(f"cluster {cluster.name}", attend)
        self._remove_strangers(nodes)

    def _attend(self, cluster: Cluster, *, nodes: dict[str, Node], busy: frozenset[str]) -> None:
        self._announce(cluster)
        observed = self._observe(cluster, nodes=nodes, busy=busy)
        settled = self._members.update(cluster, nodes=nodes, leaving=_leaving(observed), busy=observed.busy)
        for action in reconcile.decide(replace(observed, slurm_settled=settled)):
            self._execute(cluster, action)

    def _told(self) -> list[Pass]:
        """How each thread does."""
        tools = self._tools
        loop = Pass(name="loop", at=self._looped_at, late_after_s=LATE_AFTER_S, problem=self._complaints.summary)
        workers = [self._service, self._storage.worker, self._upkeep.worker, self._watch.worker]
        workers += [tools.tailer.worker, tools.shipper.worker]
        forwarder, metadata, reach = self._forwarder, self._metadata, self._reach.worker
        workers += [one.worker for one in (forwarder, metadata) if one is not None]
        return [loop, *(one.told() for one in (*workers, *([reach] if reach is not None else [])))]

    def _in_service(self) -> list[Kept]:
        """Nodes whose daemons are looked after."""
        clusters = {one.instance_id: (c, one) for c in self._clusters for one in c.instances if one.status == RUNNING}
        with self._busy_lock:
            busy = frozenset(self._busy)
        return [
            Kept(node=node, cluster=cluster.name, controller=instance in cluster.with_role(CONTROLLER))
            for node in self._tools.fleet.nodes()
            if node.spec.instance_id in clusters and node.spec.instance_id not in busy
            for cluster, instance in (clusters[node.spec.instance_id],)
            if cluster.status != "Deleting" and not cluster.kubernetes
        ]

    def _refresh(self) -> None:
        """
        Ask the service. What is busy is asked first: work that ends meanwhile makes everything stale again.

        Requests come last: an update that begins meanwhile would have its status, and none of what it asks for, and so
        seem to be over.
        """
        clusters = self._tools.aws.clusters()
        requests = self._tools.plane.requests()
        self._tools.file_systems = self._tools.aws.file_systems()
        now = time.monotonic()
        self._requests, self._clusters, self._refreshed = requests, clusters, now
        failed = [one.instance_id for cluster in clusters for one in cluster.instances if one.status == FAILURE]
        self._failed_at = {name: self._failed_at.get(name, now) for name in failed}
        self._tools.statuses = {cluster.arn: cluster.status for cluster in clusters}
        self._tools.memory.forget(keep=frozenset(cluster.arn for cluster in clusters))
        if clusters and self._forwarder is None:
            self._open_fleet(clusters[0])
        if not clusters and self._forwarder is not None and not self._busy and not self._tools.fleet.nodes():
            self._close_fleet()

    def _open_fleet(self, cluster: Cluster) -> None:
        network, self._zone = self._tools.aws.place_of(cluster.subnets) if cluster.subnets else ("", "")
        if not network:
            if not cluster.instances:
                return
            network = str(ipaddress.ip_network(f"{cluster.instances[0].address}/16", strict=False))
        gateway = str(ipaddress.ip_network(network)[1])
        try:
            self._tools.fleet.open(network=network, gateway=gateway)
            self._tools.gateway = gateway
            listener = self._tools.fleet.listen(address=gateway, port=EMBEDDED_PORT)
        except NodeError as error:
            _log.error("nodes of cluster %s cannot be booted: %s", cluster.name, error)
            raise
        target = urlsplit(self._endpoint)
        self._forwarder = Forwarder(listener=listener, host=target.hostname or "127.0.0.1", port=target.port or 80)
        self._forwarder.start()
        metadata = self._tools.fleet.listen(address=METADATA_ADDRESS, port=METADATA_PORT)
        self._metadata = Metadata(listener=metadata, lookup=self._instance_metadata)
        self._metadata.start()
        self._reach.start(self._tools.fleet.pinger())

    def _close_fleet(self) -> None:
        """The last cluster is gone: the next one may be in another network."""
        if self._forwarder is not None:
            self._reach.stop()
            self._forwarder.stop()
            self._forwarder = None
        if self._metadata is not None:
            self._metadata.stop()
            self._metadata = None
        self._tools.fleet.close()
        self._tools.forget_images()

    def _instance_metadata(self, address: str) -> dict[str, Item] | None:
        """What the instance with this address is, for its metadata service."""
        for cluster in self._clusters:
            for one in cluster.instances:
                if one.address == address:
                    found: dict[str, Item] = {**instance_metadata(cluster, one, region=self._region, zone=self._zone)}
                    role = cluster.group(one.group).role
                    if role:
                        name = role.rpartition("/")[2]
                        found[f"iam/security-credentials/{name}"] = partial(self._sessions.document, role)
                    return found
        return None

    def _observe(self, cluster: Cluster, *, nodes: dict[str, Node], busy: frozenset[str]) -> Observed:
        with self._busy_lock:
            busy = busy | self._busy.keys()
        health, now = {}, time.monotonic()
        for one in cluster.instances:
            node = nodes.get(one.instance_id)
            if node is not None:
                known = self._watch.health(node)
                silent = known is Health.ALIVE and self._reach.is_silent(node)
                health[one.instance_id] = Health.SILENT if silent else known
                if one.instance_id not in busy:
                    self._tools.follow(node, cluster=cluster, group=one.group)
        with self._tools.memory.change(cluster.arn) as memory:
            if cluster.status == IN_SERVICE:
                memory.settled = sorted(
                    one.instance_id
                    for one in cluster.instances
                    if one.status != "Pending" or one.instance_id in memory.settled
                )
            return Observed(
                cluster=cluster,
                health=health,
                requests=self._requests,
                marks=self._members.marks(cluster),
                busy=busy,
                settled=frozenset(memory.settled),
                attempts=dict(memory.attempts),
                failures=dict(memory.failures),
                failed_for_s={name: now - at for name, at in self._failed_at.items()},
                scripts_failed=frozenset(memory.scripts_failed),
                rollback_message=memory.rollback_message,
            )

    def _announce(self, cluster: Cluster) -> None:
        """An event for each status that a caller of the API brought about."""
        with self._tools.memory.change(cluster.arn) as memory:
            before, memory.status = memory.status, cluster.status
        if before != cluster.status and cluster.status in _ANNOUNCED:
            self._tools.events.emit(_ANNOUNCED[cluster.status], cluster=cluster.name)

    # --- executing

    def _execute(self, cluster: Cluster, action: Action) -> None:
        if isinstance(action, reconcile.SetStatus):
            self._set_status(cluster, action)
            return
        instance = cluster.instance(action.instance_id)
        assert instance is not None
        procedure = Procedure(tools=self._tools, cluster=cluster, instance=instance, on_boot=self._waker.wake)
        match action:
            case reconcile.Prepare():
                self._start(instance, cluster, lambda: procedure.prepare(afresh=action.afresh))
            case reconcile.Replace():
                self._start(instance, cluster, lambda: procedure.replace(cause=action.cause, lost=action.lost))
            case reconcile.Reboot():
                self._start(
                    instance, cluster, lambda: procedure.reboot(cause=action.cause, unreachable=action.unreachable)
                )
            case reconcile.Remove():
                self._start(instance, cluster, procedure.remove)
            case reconcile.MarkFailed():
                self._start(instance, cluster, lambda: procedure.give_up(message=action.message))

    def _start(self, instance: Instance, cluster: Cluster, work: Callable[[], None]) -> None:
        """Run ``work`` in a thread. Until the service was asked again afterwards, the instance stays busy."""
        with self._busy_lock:
            self._busy[instance.instance_id] = cluster.arn

        def guarded() -> None:
            try:
                work()
            except Exception:  # noqa: BLE001
                # The entry point of a thread: the records still say what is to be done, and it is decided again.
                _log.exception("work on %s failed", instance.instance_id)
                self._stopping.wait(1.0)
            finally:
                self._release(instance.instance_id)

        self._pool.submit(guarded)

    def _release(self, instance_id: str) -> None:
        # Stale first: whoever sees the instance free must also see what the service says of it by now.
        self._stale = True
        with self._busy_lock:
            self._busy.pop(instance_id, None)
        self._waker.wake()

    def _set_status(self, cluster: Cluster, action: reconcile.SetStatus) -> None:
        message = action.message
        with self._tools.memory.change(cluster.arn) as memory:
            if action.status == ROLLING_BACK:
                memory.rollback_message = message
            if action.status == IN_SERVICE:
                memory.rollback_message = ""
                memory.settled = sorted(one.instance_id for one in cluster.instances)
        event = {
            "resource_type": "Cluster",
            "description": f"The cluster is {action.status}."
            if not message
            else f"The cluster is {action.status}: {message}",
            "level": "Error" if message else "Info",
        }
        report = Report(
            arn=cluster.arn,
            cluster_status=action.status,
            failure_message=message or None,
            events=() if action.status == "Deleted" else (event,),
        )
        self._tools.plane.report(report)
        kind = {
            IN_SERVICE: kinds.CLUSTER_IN_SERVICE,
            FAILED: kinds.CLUSTER_FAILED,
            "Deleted": kinds.CLUSTER_DELETED,
        }.get(action.status, kinds.CLUSTER_UPDATING)
        self._tools.events.emit(kind, cluster=cluster.name, evidence=message)
        self._changed()

    def _remove_strangers(self, nodes: dict[str, Node]) -> None:
        """Destroy nodes of clusters that are gone, unless the service was not asked since they were seen."""
        known = {one.instance_id for cluster in self._clusters for one in cluster.instances}
        with self._busy_lock:
            strangers = [nodes[name] for name in nodes.keys() - known - self._busy.keys()]
        if strangers and self._stale:
            return
        for node in strangers:
            _log.warning("%s belongs to no cluster any more and is destroyed", node)
            node.destroy()
            self._tools.tailer.finish(instance_id=node.spec.instance_id)
            node.remove()


def _leaving(observed: Observed) -> frozenset[str]:
    """Instances that are being deleted and so get no place in Slurm."""
    requested = {name for name, verb in observed.requests.items() if verb == "delete"}
    if observed.cluster.status == ROLLING_BACK:
        requested |= {one.instance_id for one in observed.cluster.instances if one.instance_id not in observed.settled}
    return frozenset(requested)
