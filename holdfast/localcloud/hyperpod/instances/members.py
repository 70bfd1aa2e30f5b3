"""Cluster-wide files: Slurm's configuration, and files that name all instances."""

import logging
import os
import subprocess
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor

from holdfast.localcloud.hyperpod.instances.failures import KNOWN_FAILURES
from holdfast.localcloud.hyperpod.lifecycle import (
    PROVISIONING_PARAMETERS,
    RESOURCE_CONFIG,
    hosts,
    provisioning_parameters,
    resource_config,
)
from holdfast.localcloud.hyperpod.model import COMPUTE, CONTROLLER, CREATING, PENDING, Cluster
from holdfast.localcloud.hyperpod.slurm import MachineSize, SlurmClusters, gres_conf, mark_of, slurm_conf
from holdfast.localcloud.nodes import Node, NodeError
from holdfast.localcloud.spank import slurm_version

MARKS_AGE_S = 0.8
RETRY_S = 2.0

_log = logging.getLogger(__name__)


class Members:
    """Keeps every cluster's Slurm and node files in step with its members."""

    def __init__(self, *, slurms: SlurmClusters, pool: ThreadPoolExecutor, on_done: Callable[[], None]) -> None:
        self._slurms = slurms
        self._pool = pool
        self._on_done = on_done
        self._machine = this_machine()
        self._forming: set[str] = set()
        self._retry_at: dict[str, float] = {}
        self._written: dict[tuple[str, int], str] = {}
        """(instance id, pid) -> the files as last written there."""

    def update(
        self, cluster: Cluster, *, nodes: Mapping[str, Node], leaving: frozenset[str], busy: frozenset[str]
    ) -> bool:
        """Start updates; return True if Slurm needs nothing or has no controller."""
        self._update_files(cluster, nodes=nodes, busy=busy)
        controllers = cluster.with_role("Controller")
        node = nodes.get(controllers[0].instance_id) if len(controllers) == 1 else None
        if node is None or not node.alive() or cluster.status == "Deleting":
            return True
        slurm = self._slurms.of(cluster)
        conf = slurm_conf(
            cluster, machine=self._machine, without=leaving | self._coming(cluster, lines=slurm.lines(node))
        )
        if slurm.conf == conf:
            return True
        if cluster.arn not in self._forming and self._retry_at.get(cluster.arn, 0.0) <= time.monotonic():
            self._forming.add(cluster.arn)
            self._pool.submit(self._form, cluster, node, conf)
        return False

    def _coming(self, cluster: Cluster, *, lines: frozenset[str]) -> frozenset[str]:
        """
        Return instances of a scale-up without a line yet: it follows their scripts.

        Source: AWS's "physical AI" sample, of UpdateCluster. A replacement keeps its name and line.
        """
        if cluster.status == CREATING or not lines:
            return frozenset()
        waiting = (one for one in cluster.with_role(COMPUTE) if one.status == PENDING)
        return frozenset(
            one.instance_id
            for one in waiting
            if not self._slurms.has_arrived(one.instance_id) and one.host_name not in lines
        )

    def marks(self, cluster: Cluster) -> dict[str, str]:
        """Return instance id -> request of its Slurm node's state."""
        if cluster.status not in ("InService", "Updating", "SystemUpdating") or not self._slurms.of(cluster).conf:
            return {}
        states = self._slurms.of(cluster).states(max_age_s=MARKS_AGE_S)
        found = {
            one.instance_id: mark_of(states[one.host_name]) for one in cluster.instances if one.host_name in states
        }
        return {name: mark for name, mark in found.items() if mark}

    def _form(self, cluster: Cluster, controller: Node, conf: str) -> None:
        groups = {group.name: group for group in cluster.groups}
        by_ami = groups[cluster.with_role(CONTROLLER)[0].group].has_ami_configuration
        slurm = self._slurms.of(cluster)
        # slurmctld does not start for the first time before slurmdbd answers.
        before = self._slurms.accounting.start if by_ami else None
        try:
            slurm.form(controller=controller, conf=conf, gres=gres_conf(cluster), before_start=before)
        except KNOWN_FAILURES as error:
            _log.warning("Slurm of cluster %s: %s", cluster.name, error)
            slurm.report_formation(problem=str(error))
            self._retry_at[cluster.arn] = time.monotonic() + RETRY_S
        except Exception as error:  # noqa: BLE001 - the thread of a pool: nobody else would say it
            _log.exception("Slurm of cluster %s", cluster.name)
            slurm.report_formation(problem=f"{type(error).__name__}: {error}")
            self._retry_at[cluster.arn] = time.monotonic() + RETRY_S
        finally:
            self._forming.discard(cluster.arn)
            self._on_done()

    def _update_files(self, cluster: Cluster, *, nodes: Mapping[str, Node], busy: frozenset[str]) -> None:
        names, config = hosts(cluster), resource_config(cluster)
        parameters = "" if cluster.kubernetes else provisioning_parameters(cluster)
        for one in cluster.instances:
            node = nodes.get(one.instance_id)
            if node is None or one.instance_id in busy or self._written.get((one.instance_id, node.pid)) == config:
                continue
            try:
                node.write_file("/etc/hosts", names.encode())
                node.write_file(RESOURCE_CONFIG, config.encode())
                if parameters:
                    node.write_file(PROVISIONING_PARAMETERS, parameters.encode())
            except (NodeError, OSError, subprocess.SubprocessError):
                continue
            self._written[one.instance_id, node.pid] = config


def this_machine() -> MachineSize:
    """Return the size of each node for Slurm: this machine, minus a little memory."""
    pages, size = os.sysconf("SC_PHYS_PAGES"), os.sysconf("SC_PAGE_SIZE")
    memory_mib = max(512, pages * size // (1 << 20) - 512)
    return MachineSize(cpus=os.cpu_count() or 1, memory_mib=memory_mib, slurm=slurm_version())
