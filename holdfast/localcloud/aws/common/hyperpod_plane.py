"""
Private plane between SageMaker, EKS and the control plane beside the embedded AWS.

The control plane reads clusters from the public API. Here it learns when to read (`watch`) and which node operations
were requested (`requests`), and reports results (`report`). Answers are plain JSON data.

A request stays listed until a report answers it: a reboot by status Pending, or any status with a new launch time; a
replacement by a node that `replaces` the old one; a deletion by NotFound. Each watch names the Kubernetes version of
EKS clusters.
"""

import threading
import time
from typing import Any, Protocol

from holdfast.localcloud.aws.common.errors import ServiceError


class ClusterService(Protocol):
    account: str
    region: str

    def requests(self) -> list[dict[str, str]]: ...

    def report(self, body: dict[str, Any]) -> None: ...


class ControlPlanes(Protocol):
    account: str
    region: str

    def became(self, body: dict[str, Any]) -> None: ...


class Plane:
    def __init__(self, *, simulated: bool) -> None:
        """`simulated`: there is no control plane; nodes start and end at once."""
        self.simulated = simulated
        self._changed = threading.Condition()
        self._version = time.time_ns() // 1_000_000  # so that a version from before a restart is never met again
        self._open = True
        self._members: dict[tuple[str, str], ClusterService] = {}
        self._control_planes: dict[tuple[str, str], ControlPlanes] = {}
        self.kubernetes = ""
        """Kubernetes version of EKS clusters, as last reported by the control plane; "": they are records."""

    def join(self, member: ClusterService) -> None:
        with self._changed:
            self._members[member.account, member.region] = member

    def join_eks(self, member: ControlPlanes) -> None:
        with self._changed:
            self._control_planes[member.account, member.region] = member

    def changed(self) -> None:
        with self._changed:
            self._version += 1
            self._changed.notify_all()

    def close(self) -> None:
        with self._changed:
            self._open = False
            self._changed.notify_all()

    def watch(self, *, version: int, timeout_s: float, kubernetes: str = "") -> dict[str, Any]:
        with self._changed:
            self.kubernetes = kubernetes
            self._changed.wait_for(lambda: self._version != version or not self._open, timeout=timeout_s)
            return {"version": self._version}

    def requests(self) -> dict[str, Any]:
        with self._changed:
            members = list(self._members.values())
        return {"requests": [request for member in members for request in member.requests()]}

    def report(self, body: dict[str, Any]) -> dict[str, Any]:
        arn = str(body.get("cluster_arn", ""))
        with self._changed:
            member = self._members.get(_place(arn))
        if member is None:
            raise _unknown(arn)
        member.report(body)
        return {}

    def became(self, body: dict[str, Any]) -> dict[str, Any]:
        arn = str(body.get("arn", ""))
        with self._changed:
            member = self._control_planes.get(_place(arn))
        if member is None:
            raise _unknown(arn)
        member.became(body)
        return {}


def _place(arn: str) -> tuple[str, str]:
    parts = arn.split(":")
    return (parts[4], parts[3]) if len(parts) == 6 else ("", "")


def _unknown(arn: str) -> ServiceError:
    return ServiceError("ResourceNotFound", f"no cluster has the ARN '{arn}'", 404)
