"""What the service says of clusters, requests and file systems: asked again whenever it has changed."""

import logging
import threading
import time
import urllib.error
from collections.abc import Callable

from botocore.exceptions import BotoCoreError, ClientError

from holdfast.localcloud.hyperpod.api import Aws, Plane
from holdfast.localcloud.hyperpod.model import FAILURE, NOT_FOUND, Cluster, FileSystem, Instance
from holdfast.localcloud.kubernetes import EksCluster
from holdfast.localcloud.supervision import Complaints, Worker

REFRESH_S = 5.0
UNREACHABLE = (ClientError, BotoCoreError, urllib.error.URLError, OSError, ValueError)

_log = logging.getLogger(__name__)


class Service:
    """
    The last answers, and a thread that waits for news.

    Args:
        on_change: Called when the answers have become stale.
        kubernetes: The version that clusters of EKS would run; empty where they are records.
        on_loss: Called when the service does not answer.
    """

    def __init__(
        self,
        *,
        aws: Aws,
        plane: Plane,
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
        """Instance id -> what is asked for it."""
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
        """The thread ends when its question is answered; nobody waits for it."""
        self._stopping.set()

    def spoil(self) -> None:
        """What was done makes the answers stale."""
        self.is_stale = True

    def changed(self) -> None:
        """They are stale, and somebody waits to know."""
        self.spoil()
        self._on_change()

    def is_due(self) -> bool:
        """The answers are stale or old."""
        return self.is_stale or time.monotonic() - self._asked_at > REFRESH_S

    def ask(self) -> None:
        """
        Ask for all.

        Requests come after clusters: an update that begins meanwhile would have its status, and none of what it asks
        for, and so seem to be over.
        """
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
        """Instance id -> for how long its failure has been seen."""
        now = time.monotonic()
        return {name: now - at for name, at in self._failed_at.items()}

    def status_of(self, arn: str) -> str:
        return self._statuses.get(arn, NOT_FOUND)

    def at(self, address: str) -> tuple[Cluster, Instance] | None:
        """The instance with this address."""
        found = ((cluster, one) for cluster in self.clusters for one in cluster.instances if one.address == address)
        return next(found, None)

    def _watch(self) -> None:
        version = 0
        while not self._stopping.is_set():
            try:
                seen = self._plane.watch(version=version, kubernetes=self._kubernetes())
            except UNREACHABLE as error:
                self._complaints.tell("embedded AWS", f"{type(error).__name__}: {error}")
                self._on_loss()
                self._stopping.wait(0.3)
                continue
            self._complaints.settled("embedded AWS")
            self.worker.passed()
            if seen != version:
                version = seen
                self.changed()
