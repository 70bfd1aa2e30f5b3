"""The private plane between the SageMaker service and the HyperPod control plane.

The control plane learns clusters from the public API; here it learns when to look (`watch`) and what callers want
done with single nodes (`requests`), and says what became of them (`report`). The answers are plain JSON data.

A request stays listed until a report answers it: a reboot by the status Pending, or by any status with a new launch
time; a replacement by a node that `replaces` the old one; a deletion by NotFound.
"""

import threading
import time
from typing import Any, Protocol

from holdfast.localcloud.aws.common.errors import ServiceError


class Clusters(Protocol):
    """The SageMaker service of one account and region, as this plane sees it."""

    account: str
    region: str

    def requests(self) -> list[dict[str, str]]: ...

    def report(self, body: dict[str, Any]) -> None: ...


class Plane:
    """Shared by the SageMaker services of all accounts and regions."""

    def __init__(self, *, simulated: bool) -> None:
        """`simulated`: no control plane exists; nodes come and go at once."""
        self.simulated = simulated
        self._changed = threading.Condition()
        self._version = time.time_ns() // 1_000_000  # so that a version from before a restart is never met again
        self._open = True
        self._members: dict[tuple[str, str], Clusters] = {}

    def join(self, member: Clusters) -> None:
        with self._changed:
            self._members[member.account, member.region] = member

    def changed(self) -> None:
        """A caller changed a cluster record."""
        with self._changed:
            self._version += 1
            self._changed.notify_all()

    def close(self) -> None:
        """Let go of all watchers."""
        with self._changed:
            self._open = False
            self._changed.notify_all()

    def watch(self, *, version: int, timeout_s: float) -> dict[str, Any]:
        with self._changed:
            self._changed.wait_for(lambda: self._version != version or not self._open, timeout=timeout_s)
            return {"version": self._version}

    def requests(self) -> dict[str, Any]:
        with self._changed:
            members = list(self._members.values())
        return {"requests": [request for member in members for request in member.requests()]}

    def report(self, body: dict[str, Any]) -> dict[str, Any]:
        """Hand a report to the service that holds the cluster."""
        arn = str(body.get("cluster_arn", ""))
        parts = arn.split(":")
        with self._changed:
            member = self._members.get((parts[4], parts[3])) if len(parts) == 6 else None
        if member is None:
            raise ServiceError("ResourceNotFound", f"no cluster has the ARN '{arn}'", 404)
        member.report(body)
        return {}
