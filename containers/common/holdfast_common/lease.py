"""
Lease of the one process that acts. A holder is judged by the change of the lease, seen with this process's own clock,
so that clocks need not agree; as in client-go's leaderelection.
"""

import threading
import time
from collections.abc import Callable
from datetime import datetime, timezone
from typing import Any, Optional

from holdfast_common.kubernetes import KubernetesClient, KubernetesError

LASTS_S, HELD_S, RENEW_S = 15.0, 10.0, 3.0
"""Lease without a change until another takes it; own belief in it since the last renewal; time between two renewals."""


class Lease:
    def __init__(
        self,
        client: "Callable[[], KubernetesClient]",
        *,
        name: str,
        namespace: str,
        identity: str,
        report: Callable[[str], None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._client, self._name = client, name
        self._path = f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases"
        self._identity = identity
        self._report = report
        self._clock = clock
        self._seen: tuple[str, float] = ("", 0.0)
        """Resource version of another's lease, and since when it has not changed."""
        self._renewed_s: Optional[float] = None

    @property
    def is_held(self) -> bool:
        return self._renewed_s is not None and self._clock() - self._renewed_s < HELD_S

    def start(self) -> None:
        threading.Thread(target=self._loop, name="lease", daemon=True).start()

    def renew(self) -> None:
        """Take or renew the lease if this process may. Raises: KubernetesError."""
        began_s = self._clock()
        client = self._client()
        try:
            found = client.get(f"{self._path}/{self._name}")
        except KubernetesError as error:
            if error.code != 404:
                raise
            client.create(self._path, {"metadata": {"name": self._name}, "spec": self._spec()})
        else:
            if not self._may_take(found, now_s=began_s):
                self._renewed_s = None
                return
            version = found["metadata"]["resourceVersion"]
            client.patch(f"{self._path}/{self._name}", {"metadata": {"resourceVersion": version}, "spec": self._spec()})
        if not self.is_held:
            self._report(f"lease {self._name}: held by {self._identity}")
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
                    self._report(f"lease {self._name}: {error}; retrying")
                    reported = str(error)
            time.sleep(RENEW_S)
