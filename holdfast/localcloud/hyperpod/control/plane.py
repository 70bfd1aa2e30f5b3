"""Control loop: observe, decide, execute after each change. Slow work happens in threads."""

import ipaddress
import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from holdfast.localcloud.home import keys_of
from holdfast.localcloud.hyperpod.api import Aws, PlaneClient, Report, RoleSessions, Waker
from holdfast.localcloud.hyperpod.control import reconcile
from holdfast.localcloud.hyperpod.control.health import HealthWatch
from holdfast.localcloud.hyperpod.control.reconcile import Action, Health, Observation
from holdfast.localcloud.hyperpod.control.service import UNREACHABLE, Service
from holdfast.localcloud.hyperpod.control.work import InstanceWork
from holdfast.localcloud.hyperpod.fsx import Storage
from holdfast.localcloud.hyperpod.instances import Machines, Members, Memory, Procedure
from holdfast.localcloud.hyperpod.lifecycle import TIMEOUT_S, Bundles, instance_metadata
from holdfast.localcloud.hyperpod.logs import EventSink, LogShipper, Tailer
from holdfast.localcloud.hyperpod.model import (
    CONTROLLER,
    FAILED,
    IN_SERVICE,
    ROLLING_BACK,
    RUNNING,
    SYSTEM_UPDATING,
    Cluster,
    Instance,
)
from holdfast.localcloud.hyperpod.network import Item, NodeLinks
from holdfast.localcloud.hyperpod.slurm import FORM_TIMEOUT_S, SlurmClusters
from holdfast.localcloud.hyperpod.upkeep import Upkeep, WatchedNode
from holdfast.localcloud.kubernetes import Account, Binaries, Clusters, EksCluster
from holdfast.localcloud.nodes import Fleet, Node, NodeError
from holdfast.localcloud.processes import KeptProcess
from holdfast.localcloud.roster import Place
from holdfast.localcloud.supervision import Complaints, Pass, Passes, passes_path
from holdfast_common import kinds

IDLE_S = 1.0
LATE_AFTER_S = 30.0
JUDGED_WITHIN_S = 3600.0
HYPERPOD = "hyperpod"

_log = logging.getLogger(__name__)

_ANNOUNCED = {
    "Creating": kinds.CLUSTER_CREATING,
    "Updating": kinds.CLUSTER_UPDATING,
    "SystemUpdating": kinds.CLUSTER_UPDATING,
    "Deleting": kinds.CLUSTER_DELETING,
}


class ControlPlane:
    """
    HyperPod service of one home.

    Args:
        endpoint: Of the embedded AWS.
        lifecycle_timeout_s: Timeout of a lifecycle script. Default: 600 s.
        node_line_delay_s: Between the script of a node that joins a running cluster and its line in slurm.conf; on AWS
            it can be minutes. Default: 0 s.
        form_timeout_s: Wait for Slurm's controller, "the expected time" that AWS does not quantify. Default: 40 s.
        recovery_share: Share of instances repaired within an hour when several seem broken; at least one. Default: 0.1
        binaries: Of Kubernetes, called for each EKS cluster. Default: none, such clusters are records.
        kept: Processes to restart when they exit. Default: none
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
        recovery_share: float = reconcile.SHARE,
        binaries: Callable[[], Binaries | None] = lambda: None,
        kept: Sequence[KeptProcess] = (),
    ) -> None:
        self._kept = kept
        self._endpoint, self._region, self._zone = endpoint, region, ""
        self._waker = Waker()
        self._stopping = threading.Event()
        keys = keys_of(home)
        self._aws = Aws(endpoint=endpoint, region=region, keys=keys)
        self._plane = PlaneClient(endpoint=endpoint, region=region, keys=keys)
        self._sessions = RoleSessions(sts=self._aws.sts)
        wake = self._waker.wake
        self._fleet = Fleet(home=home)
        self._kubernetes = Clusters(
            home=home,
            fleet=self._fleet,
            account=Account(region=region, endpoint=endpoint, client=self._aws.client),
            binaries=binaries,
            tell=self._plane.report_control_plane,
            on_change=wake,
        )
        self._service = Service(
            aws=self._aws,
            plane=self._plane,
            on_change=wake,
            kubernetes=self._kubernetes.offers,
            on_loss=self._sessions.forget,
        )
        self._work = InstanceWork(on_done=self._service.spoil, on_free=wake)
        self._shipper = LogShipper(logs=self._aws.logs)
        self._events = EventSink(shipper=self._shipper)
        self._tailer = Tailer(shipper=self._shipper)
        self._memory = Memory(path=home / "hyperpod" / "memory.json")
        self._ways = NodeLinks(fleet=self._fleet, endpoint=endpoint, lookup=self._instance_metadata, on_silence=wake)
        self._slurms = SlurmClusters(home=home, form_timeout_s=form_timeout_s, node_line_delay_s=node_line_delay_s)
        self._machines = Machines(
            home=home,
            fleet=self._fleet,
            tailer=self._tailer,
            region=region,
            endpoint=self._ways.endpoint,
            file_systems=lambda: self._service.file_systems,
            kubernetes=self._kubernetes,
            zone=lambda: self._zone or f"{region}a",
        )
        self._procedure = partial(
            Procedure,
            machines=self._machines,
            slurms=self._slurms,
            kubernetes=self._kubernetes,
            bundles=Bundles(s3=self._aws.s3, directory=home / "hyperpod" / "bundles"),
            memory=self._memory,
            events=self._events,
            plane=self._plane,
            status_of=self._service.status_of,
            lifecycle_timeout_s=lifecycle_timeout_s,
            on_boot=wake,
        )
        self._members = Members(slurms=self._slurms, pool=self._work.pool, on_done=self._service.changed)
        self._watch = HealthWatch(on_change=wake)
        self._storage = Storage(home=home, aws=self._aws, events=self._events, clusters=lambda: self._service.clusters)
        self._recovery_share = recovery_share
        self._held: set[str] = set()
        """Instances that are left alone though they seem broken, already reported."""
        self._upkeep = Upkeep(kept=self._in_service, events=self._events, pool=self._work.pool)
        self._complaints = Complaints(log=_log, what="control loop", again_after_s=0.0)
        self._looped_at = time.monotonic()
        self._passes = Passes(path=passes_path(home, HYPERPOD), reported=self._reported)

    def run(self, *, on_ready: Callable[[], None] = lambda: None) -> None:
        parts = (self._shipper, self._tailer, self._watch, self._service, self._storage, self._upkeep)
        for part in (*parts, self._kubernetes):
            part.start()
        self._slurms.accounting.prepare()
        self._machines.images.prepare()
        self._offer_kubernetes()
        self._passes.start()
        on_ready()
        try:
            while not self._stopping.is_set():
                began = time.monotonic()
                self._complaints.guard("all clusters", self._step)
                for one in () if self._stopping.is_set() else self._kept:
                    one.look()
                self._looped_at = time.monotonic()
                # A storm of changes is looked at now and then, and leaves the machine to those who cause it.
                self._stopping.wait(time.monotonic() - began)
                self._waker.wait(timeout_s=IDLE_S)
        finally:
            self._close()

    def _offer_kubernetes(self) -> None:
        if offered := self._kubernetes.offers():
            try:
                self._plane.watch(version=-1, kubernetes=offered, timeout_s=0.0)
            except UNREACHABLE as error:
                _log.warning("embedded AWS at %s: not ready: %s", self._endpoint, error)

    def stop(self) -> None:
        """Make ``run`` return soon. The next process continues work on instances."""
        self._stopping.set()
        self._waker.wake()

    def _close(self) -> None:
        self._stopping.set()
        for part in (
            self._passes,
            self._service,
            self._upkeep,
            self._storage,
            self._work,
            self._kubernetes,
            self._watch,
            self._ways,
            self._tailer,
            self._shipper,
        ):
            part.stop()

    # --- observing

    def _step(self) -> None:
        # Before the service is asked: what was busy then may have ended since, and the answer not know of it.
        busy = self._work.busy()
        if self._service.is_due() and not self._refresh():
            return
        nodes = {node.spec.instance_id: node for node in self._fleet.nodes()}
        self._serve_kubernetes(busy)
        self._watch.follow(nodes.values())
        self._ways.follow(node for node in nodes.values() if node.alive())
        for cluster in self._service.clusters:
            attend = partial(self._attend, cluster, nodes=nodes, busy=busy)
            self._complaints.guard(f"cluster {cluster.name}", attend)
        self._remove_strangers(nodes)

    def _refresh(self) -> bool:
        try:
            self._service.ask()
            self._memory.forget(keep=frozenset(cluster.arn for cluster in self._service.clusters))
            self._follow_clusters()
        except UNREACHABLE as error:
            _log.warning("embedded AWS at %s: request failed: %s", self._endpoint, error)
            self._service.spoil()
            return False
        return True

    def _serve_kubernetes(self, busy: frozenset[str]) -> None:
        if not self._ways.is_open:
            return
        due = self._kubernetes.due(
            self._service.eks_clusters, network=self._ways.network, gateway=self._ways.gateway, busy=busy
        )
        for key, work in due:
            self._work.start(key, work)

    def _attend(self, cluster: Cluster, *, nodes: dict[str, Node], busy: frozenset[str]) -> None:
        self._announce(cluster)
        observed = self._observe(cluster, nodes=nodes, busy=busy)
        settled = self._members.update(cluster, nodes=nodes, leaving=_leaving(observed), busy=observed.busy)
        accused = frozenset(reconcile.accused(observed))
        self._held &= accused | {name for name in self._held if cluster.instance(name) is None}
        for action in reconcile.decide(replace(observed, slurm_settled=settled)):
            if isinstance(action, reconcile.Replace | reconcile.Reboot) and action.instance_id in accused:
                with self._memory.change(cluster.arn) as memory:
                    recent = [at for at in memory.judged if time.time() - at < JUDGED_WITHIN_S]
                    memory.judged = [*recent, time.time()]
            self._execute(cluster, action)

    def _reported(self) -> list[Pass]:
        loop = Pass(name="loop", at=self._looped_at, late_after_s=LATE_AFTER_S, problem=self._complaints.summary)
        parts = (self._service, self._storage, self._upkeep, self._watch, self._tailer, self._shipper)
        return [
            loop,
            *(one.reported() for one in self._kept),
            *(
                one.reported()
                for one in (*(part.worker for part in parts), *self._ways.workers(), *self._kubernetes.workers())
            ),
        ]

    def _in_service(self) -> list[WatchedNode]:
        clusters = {
            one.instance_id: (cluster, one)
            for cluster in self._service.clusters
            for one in cluster.instances
            if one.status == RUNNING
        }
        busy = self._work.busy()
        return [
            WatchedNode(node=node, cluster=cluster.name, place=_place(cluster, instance))
            for node in self._fleet.nodes()
            if node.spec.instance_id in clusters and node.spec.instance_id not in busy
            for cluster, instance in (clusters[node.spec.instance_id],)
            if cluster.status != "Deleting"
        ]

    def _follow_clusters(self) -> None:
        """Open the network with the first cluster and close it after the last."""
        clusters, planes = self._service.clusters, self._service.eks_clusters
        if (clusters or planes) and not self._ways.is_open:
            self._open_network(clusters[0] if clusters else planes[0])
        if not clusters and not planes and self._ways.is_open and not self._work.busy() and not self._fleet.nodes():
            self._ways.close()
            self._machines.images.forget()

    def _open_network(self, cluster: Cluster | EksCluster) -> None:
        network, self._zone = self._aws.place_of(cluster.subnets) if cluster.subnets else ("", "")
        if not network:
            if isinstance(cluster, EksCluster) or not cluster.instances:
                return
            network = str(ipaddress.ip_network(f"{cluster.instances[0].address}/16", strict=False))
        try:
            self._ways.open(network)
        except NodeError as error:
            _log.error("cluster %s: nodes cannot boot: %s", cluster.name, error)
            raise

    def _instance_metadata(self, address: str) -> dict[str, Item] | None:
        known = self._service.at(address)
        if known is None:
            return None
        cluster, one = known
        found: dict[str, Item] = {**instance_metadata(cluster, one, region=self._region, zone=self._zone)}
        if role := cluster.group(one.group).role:
            name = role.rpartition("/")[2]
            found[f"iam/security-credentials/{name}"] = partial(self._sessions.document, role)
        return found

    def _observe(self, cluster: Cluster, *, nodes: dict[str, Node], busy: frozenset[str]) -> Observation:
        busy |= self._work.busy()
        health = {}
        for one in cluster.instances:
            node = nodes.get(one.instance_id)
            if node is not None:
                known = self._watch.health(node)
                silent = known is Health.ALIVE and self._ways.is_silent(node)
                health[one.instance_id] = Health.SILENT if silent else known
                if one.instance_id not in busy:
                    self._machines.follow(node, cluster=cluster, group=one.group)
        with self._memory.change(cluster.arn) as memory:
            if cluster.status == IN_SERVICE:
                memory.settled = sorted(
                    one.instance_id
                    for one in cluster.instances
                    if one.status != "Pending" or one.instance_id in memory.settled
                )
            return Observation(
                cluster=cluster,
                health=health,
                requests=self._service.requests,
                marks=self._marks(cluster),
                busy=busy,
                settled=frozenset(memory.settled),
                attempts=dict(memory.attempts),
                failures=dict(memory.failures),
                failed_for_s=self._service.failed_for_s(),
                scripts_failed=frozenset(memory.scripts_failed),
                rollback_message=memory.rollback_message,
                judged_lately=sum(time.time() - at < JUDGED_WITHIN_S for at in memory.judged),
                share=self._recovery_share,
            )

    def _marks(self, cluster: Cluster) -> Mapping[str, str]:
        return self._kubernetes.requested(cluster.eks_arn) if cluster.kubernetes else self._members.marks(cluster)

    def _announce(self, cluster: Cluster) -> None:
        with self._memory.change(cluster.arn) as memory:
            before, memory.status = memory.status, cluster.status
        if before != cluster.status and cluster.status in _ANNOUNCED:
            self._events.emit(_ANNOUNCED[cluster.status], cluster=cluster.name)
        elif (before, cluster.status) == (SYSTEM_UPDATING, IN_SERVICE):
            # The service ends an update of the software itself: it knows its batches.
            self._events.emit(kinds.CLUSTER_IN_SERVICE, cluster=cluster.name)

    # --- executing

    def _execute(self, cluster: Cluster, action: Action) -> None:
        if isinstance(action, reconcile.SetStatus):
            self._set_status(cluster, action)
            return
        instance = cluster.instance(action.instance_id)
        assert instance is not None
        if isinstance(action, reconcile.HoldBack):
            self._hold(cluster, instance, message=action.message)
            return
        procedure = self._procedure(cluster=cluster, instance=instance)
        start = partial(self._work.start, instance.instance_id)
        match action:
            case reconcile.Prepare():
                start(lambda: procedure.prepare(afresh=action.afresh))
            case reconcile.Replace():
                start(lambda: procedure.replace(cause=action.cause, lost=action.lost))
            case reconcile.Reboot():
                start(lambda: procedure.reboot(cause=action.cause, unreachable=action.unreachable))
            case reconcile.Update():
                start(procedure.update)
            case reconcile.Detach():
                start(procedure.detach)
            case reconcile.Check():
                start(lambda: procedure.check(checks=action.checks))
            case reconcile.Remove():
                start(procedure.remove)
            case reconcile.MarkFailed():
                start(lambda: procedure.give_up(message=action.message))

    def _hold(self, cluster: Cluster, instance: Instance, *, message: str) -> None:
        if instance.instance_id not in self._held:
            self._held.add(instance.instance_id)
            detail = {"group": instance.group, "host": instance.host_name}
            self._events.emit(
                kinds.REMEDY_REFUSED, cluster=cluster.name, node=instance.instance_id, evidence=message, detail=detail
            )

    def _set_status(self, cluster: Cluster, action: reconcile.SetStatus) -> None:
        message = action.message
        with self._memory.change(cluster.arn) as memory:
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
        self._plane.report(report)
        kind = {
            IN_SERVICE: kinds.CLUSTER_IN_SERVICE,
            FAILED: kinds.CLUSTER_FAILED,
            "Deleted": kinds.CLUSTER_DELETED,
        }.get(action.status, kinds.CLUSTER_UPDATING)
        self._events.emit(kind, cluster=cluster.name, evidence=message)
        self._service.changed()

    def _remove_strangers(self, nodes: dict[str, Node]) -> None:
        known = {one.instance_id for cluster in self._service.clusters for one in cluster.instances}
        known |= {cluster.key for cluster in self._service.eks_clusters} | self._kubernetes.keys()
        strangers = [nodes[name] for name in nodes.keys() - known - self._work.busy()]
        if strangers and self._service.is_stale:
            return
        for node in strangers:
            _log.warning("%s: destroyed: its cluster no longer exists", node)
            self._machines.end(node)


def _place(cluster: Cluster, instance: Instance) -> Place:
    if cluster.kubernetes:
        return Place.WORKER
    return Place.CONTROLLER if instance in cluster.with_role(CONTROLLER) else Place.COMPUTE


def _leaving(observed: Observation) -> frozenset[str]:
    requested = {name for name, verb in observed.requests.items() if verb == "delete"}
    if observed.cluster.status == ROLLING_BACK:
        requested |= {one.instance_id for one in observed.cluster.instances if one.instance_id not in observed.settled}
    return frozenset(requested)
