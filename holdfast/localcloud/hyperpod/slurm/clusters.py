"""Slurm of every cluster, and new instances without a line in slurm.conf."""

import os
import threading
from pathlib import Path

from holdfast.localcloud.hyperpod.model import CONTROLLER, Cluster
from holdfast.localcloud.hyperpod.slurm.accounting import Accounting
from holdfast.localcloud.hyperpod.slurm.daemons import FORM_TIMEOUT_S, start_compute
from holdfast.localcloud.hyperpod.slurm.scheduler import Slurm
from holdfast.localcloud.nodes import Node

STARTS_AT_ONCE = 3 * (os.cpu_count() or 1)
"""Of slurmd, each of which waits for its configuration. More starve the last boots."""


class SlurmClusters:
    """
    Slurm of all clusters of one home. Thread-safe.

    Args:
        form_timeout_s: Wait for Slurm's controller. Default: 40 s.
        node_line_delay_s: Between the script of a node that joins a running cluster and its line. Default: 0 s.
    """

    def __init__(self, *, home: Path, form_timeout_s: float = FORM_TIMEOUT_S, node_line_delay_s: float = 0.0) -> None:
        self._form_timeout_s, self._node_line_delay_s = form_timeout_s, node_line_delay_s
        self.accounting = Accounting(directory=home / "hyperpod" / "accounting")
        self._known: dict[str, Slurm] = {}
        self._starts = threading.Semaphore(STARTS_AT_ONCE)
        self._arrived: set[str] = set()
        """Instance ids whose scripts have ended since this process started."""

    @property
    def node_line_timeout_s(self) -> float:
        return self._node_line_delay_s + self._form_timeout_s

    def of(self, cluster: Cluster) -> Slurm:
        return self._known.setdefault(cluster.arn, Slurm(form_timeout_s=self._form_timeout_s))

    def arrive(self, instance_id: str) -> None:
        if self._node_line_delay_s:
            timer = threading.Timer(self._node_line_delay_s, lambda: self._arrived.add(instance_id))
            timer.daemon = True
            timer.start()
        else:
            self._arrived.add(instance_id)

    def has_arrived(self, instance_id: str) -> bool:
        return instance_id in self._arrived

    def start_slurmd(self, node: Node, *, cluster: Cluster) -> None:
        with self._starts:
            start_compute(node, controller_address=cluster.with_role(CONTROLLER)[0].address)
