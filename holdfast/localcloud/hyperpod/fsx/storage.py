"""Loop over file systems: directories created and removed, associations synchronized."""

import logging
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path

from holdfast.localcloud.hyperpod.api import Aws
from holdfast.localcloud.hyperpod.fsx import lustre
from holdfast.localcloud.hyperpod.fsx.lustre import AssociationSync, SyncResult
from holdfast.localcloud.hyperpod.logs import EventSink
from holdfast.localcloud.hyperpod.model import Association, Cluster, FileSystem
from holdfast.localcloud.supervision import Complaints, Worker
from holdfast_common import kinds

PASS_S = 0.4
LOOK_EVERY = 5
"""Passes between two looks at which file systems and associations there are."""
EVENTS_PER_PASS = 5
LOOK = "file systems"
LATE_AFTER_S = 60.0
"""A pass may copy files of any size."""

_log = logging.getLogger(__name__)


class Storage:
    def __init__(self, *, home: Path, aws: Aws, events: EventSink, clusters: Callable[[], list[Cluster]]) -> None:
        self._home, self._aws, self._events = home, aws, events
        self._clusters = clusters
        self._linked: dict[str, AssociationSync] = {}
        self._file_systems: list[FileSystem] = []
        self._missing: set[str] = set()
        self._stopping = threading.Event()
        self._complaints = Complaints(log=_log, what="storage", again_after_s=1.0)
        self.worker = Worker(
            name="storage", work=self._run, stopping=self._stopping, late_after_s=LATE_AFTER_S, problem=self._problem
        )

    def start(self) -> None:
        self.worker.start()

    def stop(self) -> None:
        self._stopping.set()
        self.worker.join(10.0)

    def _run(self) -> None:
        passes = 0
        while not self._stopping.is_set():
            if passes % LOOK_EVERY == 0:
                self._complaints.guard(LOOK, self._look)
            for name, linked in list(self._linked.items()):
                self._complaints.guard(_about(name), partial(self._pass, linked))
                self.worker.passed()
            passes += 1
            self.worker.passed()
            self._stopping.wait(PASS_S)

    def _problem(self) -> str:
        summaries = [self._complaints.summary, *(one.complaints.summary for one in list(self._linked.values()))]
        return "; ".join(one for one in summaries if one)

    def _look(self) -> None:
        found = self._aws.file_systems()
        for one in found:
            if one.lifecycle not in ("FAILED", "DELETING"):
                lustre.ensure_directory(self._home, one)
        self._file_systems = found
        existing = frozenset(one.file_system_id for one in found)
        links = {one.association_id: one for one in self._aws.associations() if one.file_system_id in existing}
        self._linked = {name: self._link(one) for name, one in links.items()}
        self._complaints.settle_others({LOOK, *(_about(name) for name in links)})
        self._remove_gone(existing)

    def _remove_gone(self, existing: frozenset[str]) -> None:
        """Remove data only if the file system was missing twice, so a restarted service loses none."""
        present = {entry.name for entry in (self._home / "fsx").glob("fs-*")}
        gone = present - existing
        lustre.remove_others(self._home, keep=frozenset(present - (gone & self._missing)))
        self._missing = gone

    def _link(self, association: Association) -> AssociationSync:
        known = self._linked.get(association.association_id)
        if known is not None and known.association == association:
            return known
        root = lustre.file_system_path(self._home, association.file_system_id)
        books = self._home / "hyperpod" / "books"
        return AssociationSync(association=association, root=root, books=books, s3=self._aws.s3)

    def _pass(self, linked: AssociationSync) -> None:
        copied = linked.run_once()
        if copied.imported or copied.exported:
            self._report(linked.association, copied)

    def _report(self, association: Association, copied: SyncResult) -> None:
        for kind, paths in ((kinds.FILE_IMPORTED, copied.imported), (kinds.FILE_EXPORTED, copied.exported)):
            if not paths:
                continue
            place = association.path.rstrip("/") + "/"
            singles = paths if len(paths) <= EVENTS_PER_PASS else paths[:1]
            for path in singles:
                detail: dict[str, str | int | float | bool] = {
                    "path": place + path,
                    "object": f"s3://{association.bucket}/{association.prefix}{path}",
                    "count": 1 if len(singles) == len(paths) else len(paths),
                }
                for cluster in self._using(association.file_system_id):
                    self._events.emit(kind, cluster=cluster, detail=detail)

    def _using(self, file_system_id: str) -> list[str]:
        ids = {(one.dns_name, one.mount_name) for one in self._file_systems if one.file_system_id == file_system_id}
        return [
            cluster.name
            for cluster in self._clusters()
            if any((mount.dns_name, mount.mount_name) in ids for group in cluster.groups for mount in group.mounts)
        ]


def _about(association_id: str) -> str:
    return f"data repository association {association_id}"
