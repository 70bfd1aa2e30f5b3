"""
What every part of the control plane works with, and what all of them know of the machine's own files.
"""

import contextlib
import os
import secrets
import subprocess
import threading
from dataclasses import dataclass, field
from pathlib import Path

from botocore.exceptions import BotoCoreError, ClientError

from holdfast.localcloud.containers import Parts
from holdfast.localcloud.hyperpod._aws import Aws, Plane
from holdfast.localcloud.hyperpod._events import EventSink, Tailer
from holdfast.localcloud.hyperpod._lifecycle import Bundles, LifecycleError
from holdfast.localcloud.hyperpod._logs import LogShipper
from holdfast.localcloud.hyperpod._model import Cluster, FileSystem
from holdfast.localcloud.hyperpod._slurm import Slurm, SlurmError
from holdfast.localcloud.hyperpod._state import Memory
from holdfast.localcloud.nodes import Fleet, Node, NodeError

BOOTS_AT_ONCE = 6

KNOWN_FAILURES = (
    NodeError,
    SlurmError,
    LifecycleError,
    ClientError,
    BotoCoreError,
    OSError,
    subprocess.SubprocessError,
)


@dataclass(kw_only=True)
class Tools:
    """What the procedures work with; shared by all threads."""

    home: Path
    fleet: Fleet
    aws: Aws
    plane: Plane
    events: EventSink
    tailer: Tailer
    shipper: LogShipper
    memory: Memory
    bundles: Bundles
    lifecycle_timeout_s: float
    containers: Parts = field(default_factory=Parts)
    file_systems: list[FileSystem] = field(default_factory=list)
    slurms: dict[str, Slurm] = field(default_factory=dict)
    boots: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(BOOTS_AT_ONCE))

    def slurm(self, cluster: Cluster) -> Slurm:
        return self.slurms.setdefault(cluster.arn, Slurm(plugstack=self.containers.plugstack))

    def find(self, instance_id: str) -> Node | None:
        return next((node for node in self.fleet.nodes() if node.spec.instance_id == instance_id), None)


def munge_key(home: Path, cluster: Cluster) -> bytes:
    """The cluster's MUNGE key, made once and kept."""
    path = home / "hyperpod" / "keys" / f"{cluster.cluster_id}.munge"
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    with contextlib.suppress(FileExistsError):
        fresh = path.with_name(f"{path.name}.{threading.get_ident()}")
        fresh.write_bytes(secrets.token_bytes(128))
        fresh.chmod(0o600)
        try:
            os.link(fresh, path)
        finally:
            fresh.unlink()
    return path.read_bytes()
