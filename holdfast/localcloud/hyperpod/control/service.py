"""Cached answers of the service, refreshed after changes."""

import logging
import threading
import time
import urllib.error
from collections.abc import Callable

from botocore.exceptions import BotoCoreError, ClientError

from holdfast.localcloud.hyperpod.api import Aws, PlaneClient
from holdfast.localcloud.hyperpod.model import FAILURE, NOT_FOUND, Cluster, FileSystem, Instance
from holdfast.localcloud.kubernetes import EksCluster
from holdfast.localcloud.supervision import Complaints, Worker

REFRESH_S = 5.0
UNREACHABLE = (ClientError, BotoCoreError, urllib.error.URLError, OSError, ValueError)

_log = logging.getLogger(__name__)


class Service:
    """
    Last answers, and a thread that waits for changes.

    Args:
        on_change: Called when the answers are stale.
        kubernetes: Version for EKS clusters; "" for records.
        on_loss: Called when the service does not respond.
    """

    def __init__(
        self,
        *,
        aws: Aws,
        plane: PlaneClient,
        on_change: Callable[[], None],
        kubernetes: Callable[[], str] = lambda: "",
        on_loss: Callable[[], None] = lambda: None,
    ) -> None:
        self._aws, self._plane, self._kubernetes = aws, plane, kubernetes
        self._on_change, self._on_loss = on_change, on_loss
        self.clusters: list[Cluster] = []
        self.eks_clusters: list[EksCluster] = []
        """Those of EKS; none where all of them are records."""
        self.requests: dict[str, str] = {}
        """Instance id -> requested operation."""
        self.file_systems: list[FileSystem] = []
        self.is_stale = True
        self._failed_at: dict[str, float] = {}
        """Instance id -> when it was seen to have failed."""
        self._statuses: dict[str, str] = {}
        self._asked_at = 0.0
        self._complaints = Complaints(log=_log, what="waiting for changes")
        self._stopping = threading.Event()
        self.worker = Worker(name="service", work=self._watch, stopping=self._stopping)

    def start(self) -> None:
        self.worker.start()

    def stop(self) -> None:
        self._stopping.set()

    def spoil(self) -> None:
        self.is_stale = True

    def changed(self) -> None:
        self.spoil()
        self._on_change()

    def is_due(self) -> bool:
        return self.is_stale or time.monotonic() - self._asked_at > REFRESH_S

    def ask(self) -> None:
        """Refresh all. Requests are read after clusters: a new update would otherwise seem to be over."""
        self.is_stale = False
        self.eks_clusters = self._aws.eks_clusters() if self._kubernetes() else []
        clusters = self._aws.clusters()
        requests = self._plane.requests()
        self.file_systems = self._aws.file_systems()
        now = time.monotonic()
        self.requests, self.clusters, self._asked_at = requests, clusters, now
        failed = [one.instance_id for cluster in clusters for one in cluster.instances if one.status == FAILURE]
        self._failed_at = {name: self._failed_at.get(name, now) for name in failed}
        self._statuses = {cluster.arn: cluster.status for cluster in clusters}

    def failed_for_s(self) -> dict[str, float]:
        """Return instance id -> seconds since its failure was seen."""
        now = time.monotonic()
        return {name: now - at for name, at in self._failed_at.items()}

    def status_of(self, arn: str) -> str:
        return self._statuses.get(arn, NOT_FOUND)

    def at(self, address: str) -> tuple[Cluster, Instance] | None:
        found = ((cluster, one) for cluster in self.clusters for one in cluster.instances if one.address == address)
        return next(found, None)

    def _watch(self) -> None:
        version = 0
        while not self._stopping.is_set():
            try:
                seen = self._plane.watch(version=version, kubernetes=self._kubernetes())
            except UNREACHABLE as error:
                self._complaints.record("embedded AWS", f"{type(error).__name__}: {error}")
                self._on_loss()
                self._stopping.wait(0.3)
                continue
            self._complaints.settled("embedded AWS")
            self.worker.passed()
            if seen != version:
                version = seen
                self.changed()
