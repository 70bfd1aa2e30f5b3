"""
Events of HyperPod for EventBridge: state changes, node health, cluster events.

Shapes: developer guide, "Amazon EventBridge events for HyperPod". Events are sent by an own thread, in order; a failure
is only logged.
"""

import json
import logging
import queue
import threading
from typing import Any

from holdfast.localcloud.aws.clients import ClientFactory
from holdfast.localcloud.aws.sagemaker import store, views

log = logging.getLogger(__name__)

STATE_CHANGE = "SageMaker HyperPod Cluster State Change"
NODE_HEALTH = "SageMaker HyperPod Cluster Node Health Event"
CLUSTER_EVENT = "SageMaker HyperPod Cluster Event"
MAX_BATCH = 10


class ClusterNotices:
    """Sends events of one account and region to the default bus."""

    def __init__(self, *, client: ClientFactory) -> None:
        self._client = client
        self._waiting: queue.SimpleQueue[dict[str, Any] | None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None

    def state_change(self, cluster: store.ClusterRecord) -> None:
        described = views.describe(cluster)
        self._put(STATE_CHANGE, cluster, {**described, "CreationTime": described["CreationTime"].isoformat()})

    def node_health(
        self, cluster: store.ClusterRecord, node: store.ClusterNode, *, healthy: bool, reason: str, repair: str
    ) -> None:
        summary = {
            "HealthStatus": "Healthy" if healthy else "Unhealthy",
            "HealthStatusReason": reason,
            "RepairAction": repair,
            "Recommendation": "",
        }
        detail = {"ClusterName": cluster.name, "ClusterArn": cluster.arn, "InstanceId": node.instance_id}
        self._put(NODE_HEALTH, cluster, {**detail, "HealthSummary": summary})

    def cluster_event(self, cluster: store.ClusterRecord, event: dict[str, Any]) -> None:
        detail = {**event, "EventTime": event["EventTime"].isoformat()}
        self._put(CLUSTER_EVENT, cluster, {"EventDetails": detail})

    def close(self) -> None:
        if self._thread is not None:
            self._waiting.put(None)
            self._thread.join(timeout=5)

    def _put(self, kind: str, cluster: store.ClusterRecord, detail: dict[str, Any]) -> None:
        if self._thread is None:
            self._thread = threading.Thread(target=self._work, name="hyperpod-notices", daemon=True)
            self._thread.start()
        text = json.dumps(detail, default=str)
        self._waiting.put({"Source": "aws.sagemaker", "DetailType": kind, "Detail": text, "Resources": [cluster.arn]})

    def _work(self) -> None:
        while True:
            entries, ended = self._batch()
            try:
                if entries:
                    self._client("events").put_events(Entries=entries)
            except Exception as error:  # noqa: BLE001 - what is wrong with these must not keep later ones back
                log.warning("events: %d not delivered: %s", len(entries), error)
            if ended:
                return

    def _batch(self) -> tuple[list[dict[str, Any]], bool]:
        entries: list[dict[str, Any]] = []
        entry = self._waiting.get()
        while entry is not None:
            entries.append(entry)
            if len(entries) == MAX_BATCH or self._waiting.empty():
                return entries, False
            entry = self._waiting.get()
        return entries, True
