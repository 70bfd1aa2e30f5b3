import logging
import subprocess
import threading
from dataclasses import replace
from pathlib import Path

from holdfast.localcloud.hyperpod.model import Cluster
from holdfast.localcloud.image import NodeImage, build
from holdfast.localcloud.nodes import Fleet

COPY_TIMEOUT_S = 60.0

_log = logging.getLogger(__name__)


class NodeImages:
    """Image of HyperPod's AMI for each orchestrator. Thread-safe."""

    def __init__(self, *, directory: Path, fleet: Fleet) -> None:
        self._directory = directory
        self._fleet = fleet
        self._built: dict[str, NodeImage] = {}
        self._lock = threading.Lock()

    def prepare(self) -> None:
        threading.Thread(target=build, args=(self._directory,), kwargs={"orchestrator": "slurm"}, daemon=True).start()

    def of(self, cluster: Cluster) -> NodeImage:
        orchestrator = "eks" if cluster.kubernetes else "slurm"
        with self._lock:
            if orchestrator not in self._built:
                image = build(self._directory, orchestrator=orchestrator)
                _log.info("image of the nodes under %s: %s", orchestrator, "; ".join(image.notes))
                self._built[orchestrator] = replace(image, path=self._beside_nodes(image.path))
            return self._built[orchestrator]

    def forget(self) -> None:
        with self._lock:
            self._built.clear()

    def _beside_nodes(self, image: Path) -> Path:
        """Return a copy on the nodes' file system: overlay layers must not be nested."""
        place = self._fleet.directory / "images" / image.name
        if not place.is_dir():
            place.parent.mkdir(exist_ok=True)
            fresh = place.with_suffix(".new")
            subprocess.run(["cp", "--archive", str(image), str(fresh)], check=True, timeout=COPY_TIMEOUT_S)
            fresh.rename(place)
        return place
