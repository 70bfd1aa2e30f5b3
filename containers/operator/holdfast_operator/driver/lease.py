"""
Lease of the operator that acts. A holder is judged by the change of the lease, seen with this process's own clock, so
that clocks need not agree; as in client-go's leaderelection.
"""

import threading
import time
from collections.abc import Callable
from datetime import datetime, timezone
from typing import Any

from holdfast_common import KubernetesError
from holdfast_operator.driver.cluster import ClusterAccess

NAME = "holdfast-operator"
LASTS_S, HELD_S, RENEW_S = 15.0, 10.0, 3.0
"""Lease without a change until another takes it; own belief in it since the last renewal; time between two renewals."""


class Lease:
    def __init__(
        self,
        access: ClusterAccess,
        *,
        identity: str,
        report: Callable[[str], None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._access = access
        self._identity = identity
        self._report = report
        self._clock = clock
        self._seen: tuple[str, float] = ("", 0.0)
        """Resource version of another's lease, and since when it has not changed."""
        self._renewed_s: float | None = None

    @property
    def is_held(self) -> bool:
        return self._renewed_s is not None and self._clock() - self._renewed_s < HELD_S

    def start(self) -> None:
        threading.Thread(target=self._loop, name="lease", daemon=True).start()

    def renew(self) -> None:
        """Take or renew the lease if this operator may. Raises: KubernetesError."""
        began_s = self._clock()
        client = self._access.client()
        path = f"/apis/coordination.k8s.io/v1/namespaces/{self._access.namespace}/leases"
        try:
            found = client.get(f"{path}/{NAME}")
        except KubernetesError as error:
            if error.code != 404:
                raise
            client.create(path, {"metadata": {"name": NAME}, "spec": self._spec()})
        else:
            if not self._may_take(found, now_s=began_s):
                self._renewed_s = None
                return
            version = found["metadata"]["resourceVersion"]
            client.patch(f"{path}/{NAME}", {"metadata": {"resourceVersion": version}, "spec": self._spec()})
        if not self.is_held:
            self._report(f"lease {NAME}: held by {self._identity}")
        self._renewed_s = began_s

    def _may_take(self, found: dict[str, Any], *, now_s: float) -> bool:
        if (found.get("spec") or {}).get("holderIdentity") in (self._identity, None, ""):
            return True
        version = found["metadata"]["resourceVersion"]
        if version != self._seen[0]:
            self._seen = (version, now_s)
        return now_s - self._seen[1] >= LASTS_S

    def _spec(self) -> dict[str, Any]:
        now = datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.%fZ")  # one that is the same changes nothing
        return {"holderIdentity": self._identity, "leaseDurationSeconds": int(LASTS_S), "renewTime": now}

    def _loop(self) -> None:
        reported = ""
        while True:
            try:
                self.renew()
                reported = ""
            except (KubernetesError, OSError) as error:
                if str(error) != reported:
                    self._report(f"lease {NAME}: {error}; retrying")
                    reported = str(error)
            time.sleep(RENEW_S)
