"""Node of an instance: content, boot, logs, end."""

import os
import threading
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

from holdfast.catalog import InstanceType, instance_types
from holdfast.localcloud import containers, job_plugins
from holdfast.localcloud.confined import Links
from holdfast.localcloud.gpus import Gpus
from holdfast.localcloud.hyperpod.fsx import ensure_directory
from holdfast.localcloud.hyperpod.instances.images import NodeImages
from holdfast.localcloud.hyperpod.instances.turns import turns_mount
from holdfast.localcloud.hyperpod.lifecycle import (
    AWS_SETTINGS,
    EVENTS,
    JOB_EVENTS,
    JOB_VARIABLES,
    LEFT_BY_SCRIPTS,
    LIFE_CYCLE_CONFIG,
    PROVISIONING_LOG,
    PROVISIONING_PARAMETERS,
    RESOURCE_CONFIG,
    client_environment,
    client_settings,
    hosts,
    job_environment,
    job_variables,
    life_cycle_config,
    provisioning_parameters,
    resource_config,
)
from holdfast.localcloud.hyperpod.logs import Tailer
from holdfast.localcloud.hyperpod.model import OPENZFS, Cluster, FileSystem, FsxMount, Group, Instance
from holdfast.localcloud.hyperpod.slurm import PLUGSTACK_CONF, boot, munge_key
from holdfast.localcloud.image import TRAINING_ENVIRONMENT, environment_programs
from holdfast.localcloud.kubernetes import Clusters, Member, Parts
from holdfast.localcloud.nodes import (
    JOBS_SHIPPING_LOCK,
    REACHABLE,
    REACHABLE_NFS,
    SHIPPING_LOCK,
    FileSpec,
    Fleet,
    Mount,
    Node,
    NodeError,
    NodeSpec,
    python_mounts,
)

BOOTS_AT_ONCE = (os.cpu_count() or 1) + 1
"""More only take time from the controller, for which all others wait."""


@dataclass(frozen=True, kw_only=True)
class _ShippingLock:
    node: Node = field(compare=False)
    pid: int
    start_ticks: int
    path: str

    def open(self) -> int:
        if not self.node.alive():
            raise FileNotFoundError
        with self.node.inside(self.path).open("rb") as file:
            return os.dup(file.fileno())


class Machines:
    """Nodes of all instances of one home. Thread-safe. Its callables are called at each boot."""

    def __init__(
        self,
        *,
        home: Path,
        fleet: Fleet,
        tailer: Tailer,
        region: str,
        endpoint: Callable[[], str],
        file_systems: Callable[[], list[FileSystem]],
        kubernetes: Clusters,
        zone: Callable[[], str],
    ) -> None:
        self.images = NodeImages(directory=home / "hyperpod" / "images", fleet=fleet)
        self._home = home
        self._fleet = fleet
        self._tailer = tailer
        self._region = region
        self._endpoint = endpoint
        self._file_systems = file_systems
        self._kubernetes, self._zone = kubernetes, zone
        self._containers = containers.prepare(home=home)
        self._job_plugins = job_plugins.prepare(home=home, variables=(LEFT_BY_SCRIPTS, JOB_VARIABLES))
        self._gpus = Gpus(home=home)
        self._programs = environment_programs(home / "hyperpod" / "programs", at=TRAINING_ENVIRONMENT)
        self._turns = turns_mount(home)
        self._boots = threading.Semaphore(BOOTS_AT_ONCE)

    def find(self, instance_id: str) -> Node | None:
        return next((node for node in self._fleet.nodes() if node.spec.instance_id == instance_id), None)

    def boot(self, cluster: Cluster, instance: Instance, *, keep_root: bool) -> Node:
        with self._boots:
            node = self._fleet.boot(self._spec(cluster, instance), keep_root=keep_root)
        boot(node, starts_slurm=cluster.group(instance.group).has_ami_configuration)
        return node

    def follow(self, node: Node, *, cluster: Cluster, group: str, is_new: bool = False) -> None:
        """Ship the node's logs. ``is_new``: nothing was shipped yet."""
        lock = _ShippingLock(node=node, pid=node.pid, start_ticks=node.start_ticks, path=SHIPPING_LOCK)
        self._tailer.follow(
            instance_id=node.spec.instance_id,
            cluster=cluster,
            group=group,
            events=node.outside(EVENTS),
            # A pod that mounts the folder may put a link there; root reads what it leads to.
            job_events=replace(node.outside(JOB_EVENTS), links=Links.REFUSED),
            provisioning_log=node.outside(PROVISIONING_LOG),
            lock=lock,
            jobs_lock=replace(lock, path=JOBS_SHIPPING_LOCK),
            is_new=is_new,
        )

    def end(self, node: Node) -> None:
        """Remove the node after its logs were shipped."""
        node.destroy()
        self._tailer.finish(instance_id=node.spec.instance_id)
        node.remove()
        self._kubernetes.drop_disks(node.spec.instance_id)
        self._containers.forget(node.spec.instance_id)

    def _spec(self, cluster: Cluster, instance: Instance) -> NodeSpec:
        group = cluster.group(instance.group)
        image = self.images.of(cluster)
        joined = self._parts(cluster, instance)
        kind: InstanceType | None = instance_types().get(group.instance_type)
        return NodeSpec(
            instance_id=instance.instance_id,
            hostname=instance.host_name,
            address=instance.address,
            image=image.path,
            mounts=(
                *python_mounts(at=TRAINING_ENVIRONMENT),
                *self._programs,
                *image.mounts,
                *self._containers.of_node(instance.instance_id),
                *self._job_plugins.mounts,
                self._turns,
                *(self._gpus.mounts(kind) if kind else ()),
                *self._reachable(),
                *self._storage(group),
                *(joined.mounts if joined else ()),
            ),
            files={
                **self._files(cluster, instance, group=group),
                **(self._gpus.files(kind) if kind else {}),
                **(joined.files if joined else {}),
            },
            runs_containers=joined is not None,
            kernel_files=joined.kernel_files if joined else {},
        )

    def _parts(self, cluster: Cluster, instance: Instance) -> Parts | None:
        if not self._kubernetes.has(cluster.eks_arn):
            return None
        group = cluster.group(instance.group)
        member = Member(
            instance_id=instance.instance_id,
            address=instance.address,
            cluster=cluster.name,
            cluster_id=cluster.cluster_id,
            group=group.name,
            instance_type=group.instance_type,
            region=self._region,
            zone=self._zone(),
            labels=group.labels,
            taints=group.taints,
            has_volume=group.has_volume,
        )
        return self._kubernetes.parts(cluster.eks_arn, member)

    def _files(self, cluster: Cluster, instance: Instance, *, group: Group) -> dict[str, FileSpec]:
        reach = {"endpoint": self._endpoint(), "region": self._region}
        variables = job_variables({**job_environment(cluster, instance), **client_settings(**reach)})
        files = {
            "/etc/hosts": FileSpec(content=hosts(cluster).encode()),
            RESOURCE_CONFIG: FileSpec(content=resource_config(cluster).encode()),
            JOB_VARIABLES: FileSpec(content=variables.encode()),
        }
        files[AWS_SETTINGS] = FileSpec(content=client_environment(**reach).encode())
        if group.script:
            files[LIFE_CYCLE_CONFIG] = FileSpec(content=life_cycle_config(group).encode())
        if group.slurm_role:
            key = munge_key(self._home, cluster)
            files["/etc/munge/munge.key"] = FileSpec(content=key, mode=0o400, owner="munge:munge")
            files[PROVISIONING_PARAMETERS] = FileSpec(content=provisioning_parameters(cluster).encode())
        if plugstack := self._plugstack(group):
            files[PLUGSTACK_CONF] = FileSpec(content=plugstack.encode())
        return files

    def _plugstack(self, group: Group) -> str:
        """
        Return plugstack.conf; configless Slurm distributes the controller's.

        Auto-resume and job variables are always there. Containers stand in for Pyxis, which AMI-based configuration
        sets up.
        """
        if not group.slurm_role:
            return ""
        by_ami = self._containers.plugstack if group.has_ami_configuration else ""
        return self._job_plugins.plugstack + by_ami

    def _reachable(self) -> list[Mount]:
        return [
            Mount(
                source=ensure_directory(self._home, one),
                target=f"{REACHABLE_NFS if one.type == OPENZFS else REACHABLE}/{one.dns_name}/{one.mount_name}",
            )
            for one in self._file_systems()
            if one.lifecycle not in ("FAILED", "DELETING")
        ]

    def _storage(self, group: Group) -> list[Mount]:
        """With OnCreate "your lifecycle scripts are responsible for mounting" (developer guide, FSx configuration)."""
        if group.slurm_role and not group.has_ami_configuration:
            return []
        return [
            Mount(
                source=ensure_directory(self._home, self._file_system(desired, group=group)), target=desired.mount_path
            )
            for desired in group.mounts
        ]

    def _file_system(self, desired: FsxMount, *, group: Group) -> FileSystem:
        for one in self._file_systems():
            if (one.dns_name, one.mount_name) == (desired.dns_name, desired.mount_name):
                return one
        raise NodeError(
            f"no file system has the DNS name {desired.dns_name} and the mount name {desired.mount_name}; "
            f"check InstanceStorageConfigs of instance group {group.name}"
        )
