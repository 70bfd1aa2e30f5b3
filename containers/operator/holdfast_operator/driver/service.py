"""The operator's process."""

import contextlib
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from holdfast_common import ClusterAccess, KubernetesError, Lease
from holdfast_operator.driver.admission import AdmissionServer, pod_trial
from holdfast_operator.driver.cache import Cache
from holdfast_operator.driver.cluster import run_key
from holdfast_operator.driver.hyperpod import ForeignDefinitionError, HyperPodReconciler, check_definition
from holdfast_operator.driver.logs import Logs
from holdfast_operator.driver.progress import ProgressReader
from holdfast_operator.driver.reconciler import Reconciler

LEASE = "holdfast-operator"
TICK_S = 2.0
"""Time between two passes without a change: deadlines and delays of restarts have no event."""
STALLED_S = 120.0
RELOAD_S = 60.0
Object = dict[str, Any]


def run(*, identity: str, certificates: Path | None, port: int, serves_hyperpod: bool = False) -> None:
    """
    Serve until SIGTERM.

    Args:
        identity: Holder of the lease: the pod's name.
        certificates: Folder of the webhook's certificate. None: no webhook.
        serves_hyperpod: Serve HyperPodPyTorchJobs too, in place of AWS's training operator. Default: False.
    """
    _Operator(identity=identity, serves_hyperpod=serves_hyperpod).run(certificates=certificates, port=port)


class _Operator:
    def __init__(self, *, identity: str, serves_hyperpod: bool) -> None:
        self._over, self._changed = threading.Event(), threading.Event()
        self._access = ClusterAccess()
        self._lease = Lease(
            self._access.client, name=LEASE, namespace=self._access.namespace, identity=identity, report=report
        )
        self._serves_hyperpod = serves_hyperpod
        self._cache = Cache(self._access, changed=self._changed.set, report=report, serves_hyperpod=serves_hyperpod)
        self._progress = ProgressReader(self._cache, changed=self._changed.set)
        self._logs = Logs(
            self._access,
            self._cache,
            changed=self._changed.set,
            may_read=lambda: self._lease.is_held,
            report=report,
        )
        self._beat_s = time.monotonic()
        self._failed: dict[str, str] = {}
        """Last error of an object, by UID: two kinds may have one name."""

    def run(self, *, certificates: Path | None, port: int) -> None:
        signal.signal(signal.SIGTERM, lambda *_: self._end())
        admission = None
        if certificates is not None:
            admission = AdmissionServer(
                folder=certificates, port=port, is_alive=self._is_alive, trial=pod_trial(self._access)
            )
        reloaded_s = time.monotonic()
        self._lease.start()
        self._cache.start()
        self._progress.start()
        self._logs.start()
        reconciler = self._reconciler()
        hyperpod = HyperPodReconciler(
            self._access, cache=self._cache, may_write=lambda: self._lease.is_held, report=report
        )
        while not self._over.is_set():
            self._changed.wait(TICK_S)
            self._changed.clear()
            self._beat_s = time.monotonic()
            if admission is not None and time.monotonic() - reloaded_s > RELOAD_S:
                with contextlib.suppress(OSError):  # half exchanged: the next time
                    admission.reload()
                reloaded_s = time.monotonic()
            if reconciler is not None and self._cache.is_complete and self._lease.is_held:
                self._pass(self._cache.jobs(), reconciler.reconcile)
                self._pass(self._cache.hyperpod_jobs(), hyperpod.reconcile)
                self._pass(self._cache.pods(), reconciler.release)

    def _end(self) -> None:
        self._over.set()
        self._changed.set()

    def _is_alive(self) -> bool:
        return time.monotonic() - self._beat_s < STALLED_S

    def _reconciler(self) -> Reconciler | None:
        while not self._over.is_set():
            self._beat_s = time.monotonic()
            try:
                if self._serves_hyperpod:
                    check_definition(self._access.client())
                key = run_key(self._access)
            except (ForeignDefinitionError, KubernetesError, OSError) as error:
                report(f"not started: {error}; retrying")
                self._over.wait(TICK_S)
                continue
            return Reconciler(
                self._access,
                cache=self._cache,
                key=key,
                progress=self._progress,
                logs=self._logs,
                may_write=lambda: self._lease.is_held,
                report=report,
            )
        return None

    def _pass(self, found: Iterable[Object], reconcile: Callable[[Object], None]) -> None:
        for manifest in found:
            name = f"{manifest['metadata']['namespace']}/{manifest['metadata']['name']}"
            self._beat_s = time.monotonic()
            try:
                reconcile(manifest)
                self._failed.pop(manifest["metadata"]["uid"], None)
            except KubernetesError as error:
                if self._failed.get(manifest["metadata"]["uid"]) != str(error):
                    report(f"{name}: {error}; retrying")
                self._failed[manifest["metadata"]["uid"]] = str(error)


def report(line: str) -> None:
    stamp = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    print(f"{stamp} {line}", file=sys.stderr, flush=True)
