"""
What every part of the control plane works with, and what all of them know of the machine's own files.
"""

import contextlib
import logging
import os
import secrets
import subprocess
import threading
from dataclasses import dataclass, field, replace
from pathlib import Path

from botocore.exceptions import BotoCoreError, ClientError

from holdfast.localcloud.auto_resume import Plugin
from holdfast.localcloud.containers import Parts
from holdfast.localcloud.hyperpod.api import Aws, Plane
from holdfast.localcloud.hyperpod.lifecycle import EVENTS, PROVISIONING_LOG, Bundles, LifecycleError
from holdfast.localcloud.hyperpod.logs import EventSink, LogShipper, Tailer
from holdfast.localcloud.hyperpod.model import Cluster, FileSystem
from holdfast.localcloud.hyperpod.shared.memory import Memory
from holdfast.localcloud.hyperpod.slurm import FORM_TIMEOUT_S, Accounting, Slurm, SlurmError
from holdfast.localcloud.image import Image, build
from holdfast.localcloud.nodes import Fleet, Mount, Node, NodeError

BOOTS_AT_ONCE = (os.cpu_count() or 1) + 1
"""More only take time from the controller, for which all others wait."""
STARTS_AT_ONCE = 3 * (os.cpu_count() or 1)
"""Of slurmd, each of which waits for its configuration. More starve the last boots."""

EMBEDDED_PORT = 5710

_log = logging.getLogger(__name__)

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
    accounting: Accounting
    lifecycle_timeout_s: float
    node_line_delay_s: float
    """Between a new node's script and its line in slurm.conf, on a scale-up."""
    form_timeout_s: float = FORM_TIMEOUT_S
    containers: Parts = field(default_factory=Parts)
    auto_resume: Plugin = field(default_factory=Plugin)
    programs: tuple[Mount, ...] = ()
    """Lie over those of the training environment."""
    statuses: dict[str, str] = field(default_factory=dict)
    """ARN of a cluster -> its status, as the service said last."""
    region: str = ""
    gateway: str = ""
    """Where nodes reach the embedded AWS, on EMBEDDED_PORT; empty until there is a network."""
    file_systems: list[FileSystem] = field(default_factory=list)
    slurms: dict[str, Slurm] = field(default_factory=dict)
    boots: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(BOOTS_AT_ONCE))
    starts: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(STARTS_AT_ONCE))

    arrived: set[str] = field(default_factory=set)
    """Instance ids whose scripts have ended since this process started."""
    _images: dict[str, Image] = field(default_factory=dict)
    _building: threading.Lock = field(default_factory=threading.Lock)

    @property
    def node_line_timeout_s(self) -> float:
        """How long an instance waits for its line in slurm.conf."""
        return self.node_line_delay_s + self.form_timeout_s

    def arrive(self, instance_id: str) -> None:
        """Its scripts have ended: it is to get its line in slurm.conf, after the delay."""
        if self.node_line_delay_s:
            timer = threading.Timer(self.node_line_delay_s, lambda: self.arrived.add(instance_id))
            timer.daemon = True
            timer.start()
        else:
            self.arrived.add(instance_id)

    def image(self, cluster: Cluster) -> Image:
        """What HyperPod's AMI has and this machine has not, for the nodes of this cluster."""
        orchestrator = "eks" if cluster.kubernetes else "slurm"
        with self._building:
            if orchestrator not in self._images:
                image = build(self.home / "hyperpod" / "images", orchestrator=orchestrator)
                _log.info("image of the nodes under %s: %s", orchestrator, "; ".join(image.notes))
                self._images[orchestrator] = replace(image, path=_beside_nodes(image.path, fleet=self.fleet))
            return self._images[orchestrator]

    def prepare_image(self) -> None:
        """Render Slurm's image now, in a thread: the first node need not wait for it."""
        directory = self.home / "hyperpod" / "images"
        threading.Thread(target=build, args=(directory,), kwargs={"orchestrator": "slurm"}, daemon=True).start()

    def forget_images(self) -> None:
        """The fleet was closed, and the images with it."""
        with self._building:
            self._images.clear()

    def follow(self, node: Node, *, cluster: Cluster, group: str, is_new: bool = False) -> None:
        """Ship what the node logs. ``is_new``: it has shipped nothing yet."""
        self.tailer.follow(
            instance_id=node.spec.instance_id,
            cluster=cluster,
            group=group,
            events=node.outside(EVENTS),
            provisioning_log=node.outside(PROVISIONING_LOG),
            is_new=is_new,
        )

    def slurm(self, cluster: Cluster) -> Slurm:
        return self.slurms.setdefault(cluster.arn, Slurm(form_timeout_s=self.form_timeout_s))

    def find(self, instance_id: str) -> Node | None:
        return next((node for node in self.fleet.nodes() if node.spec.instance_id == instance_id), None)


def _beside_nodes(image: Path, *, fleet: Fleet) -> Path:
    """A copy on the nodes' own file system: an overlay's lower layers must not lie in each other."""
    place = fleet.directory / "images" / image.name
    if not place.is_dir():
        place.parent.mkdir(exist_ok=True)
        fresh = place.with_suffix(".new")
        subprocess.run(["cp", "--archive", str(image), str(fresh)], check=True, timeout=60)
        fresh.rename(place)
    return place


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
