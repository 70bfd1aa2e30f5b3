"""Jobs, pods and nodes as the watches report them. Decisions from it are checked against the API server."""

import threading
import time
from collections.abc import Callable
from typing import Any

from holdfast_common import JOB_LABEL, ClusterAccess, KubernetesError
from holdfast_operator.decisions import NodeFacts
from holdfast_operator.driver.cluster import hyperpod_jobs_path, jobs_path, pods_path
from holdfast_operator.objects import node_facts

Object = dict[str, Any]
Key = tuple[str, str]
"""Namespace and name."""
RETRY_S = 1.0
SLOWEST_S = 15.0


class Cache:
    """
    Watches of a cluster, a thread each.

    Args:
        changed: Called after each change, from any thread.
        report: Writes a line of the log.
        serves_hyperpod: Watch HyperPodPyTorchJobs too. Default: False.
    """

    def __init__(
        self,
        access: ClusterAccess,
        *,
        changed: Callable[[], None],
        report: Callable[[str], None],
        serves_hyperpod: bool = False,
    ) -> None:
        self._access = access
        self._changed = changed
        self._report = report
        self._lock = threading.Lock()
        self._objects: dict[str, dict[Key, Object]] = {}
        self._paths = {
            "jobs": jobs_path(),
            "pods": f"{pods_path()}?labelSelector={JOB_LABEL}",
            "nodes": "/api/v1/nodes",
            **({"HyperPodPyTorchJobs": hyperpod_jobs_path()} if serves_hyperpod else {}),
        }

    @property
    def is_complete(self) -> bool:
        """Return True once all kinds were listed."""
        with self._lock:
            return self._objects.keys() == self._paths.keys()

    def start(self) -> None:
        for kind in self._paths:
            threading.Thread(target=self._watch, args=(kind,), name=f"watch-{kind}", daemon=True).start()

    def jobs(self) -> list[Object]:
        return self._all("jobs")

    def job(self, key: Key) -> Object | None:
        with self._lock:
            return self._objects.get("jobs", {}).get(key)

    def hyperpod_jobs(self) -> list[Object]:
        return self._all("HyperPodPyTorchJobs")

    def pods(self) -> list[Object]:
        return self._all("pods")

    def pods_of(self, key: Key) -> list[Object]:
        namespace, name = key
        return [
            pod
            for pod in self.pods()
            if pod["metadata"]["namespace"] == namespace and pod["metadata"]["labels"].get(JOB_LABEL) == name
        ]

    def nodes(self) -> dict[str, NodeFacts]:
        return {node["metadata"]["name"]: node_facts(node) for node in self._all("nodes")}

    def _all(self, kind: str) -> list[Object]:
        with self._lock:
            return list(self._objects.get(kind, {}).values())

    def _watch(self, kind: str) -> None:
        pause_s, reported = RETRY_S, ""
        while True:
            try:
                for event, found in self._access.client().watch(self._paths[kind]):
                    self._apply(kind, event, found)
                    pause_s, reported = RETRY_S, ""
                continue  # the server ends each watch after some minutes
            except (KubernetesError, OSError) as error:
                if str(error) != reported:
                    self._report(f"watch of {kind}: {error}; retrying")
                    reported = str(error)
            time.sleep(pause_s)
            pause_s = min(SLOWEST_S, 2 * pause_s)

    def _apply(self, kind: str, event: str, found: Object) -> None:
        with self._lock:
            if event == "SYNC":
                self._objects[kind] = {key_of(one): one for one in found["items"]}
            elif event == "DELETED":
                self._objects[kind].pop(key_of(found), None)
            else:
                self._objects[kind][key_of(found)] = found
        self._changed()


def key_of(found: Object) -> Key:
    return found["metadata"].get("namespace", ""), found["metadata"]["name"]
