"""What nodes need for containers: the plugin compiled for this machine's Slurm, the helper, and the images."""

import hashlib
import logging
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from holdfast.localcloud.containers.start import squashfs
from holdfast.localcloud.containers.store import Store
from holdfast.localcloud.home import remove_tree_quietly
from holdfast.localcloud.nodes import Mount
from holdfast.localcloud.spank import SYSTEM_PATH, cannot_compile, compile_plugin, header_version

TOOLS_AT, IMAGES_AT = "/opt/holdfast/containers", "/opt/holdfast/images"
PLUGIN = "holdfast_containers.so"
PYTHON = "/opt/holdfast/env/bin/python3"

_HERE = Path(__file__).parent
_SOURCES = sorted((_HERE / "spank").glob("*.[ch]"))
_HELPER = sorted((_HERE / "start").glob("*.py"))

_log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class Parts:
    """For each node of a local cloud. Without containers both are empty."""

    mounts: tuple[Mount, ...] = ()
    unpacked: Path | None = None
    """Folder of the machine with a folder per node for its image files. Default: nodes have no containers"""
    plugstack: str = ""
    """plugstack.conf, on the controller and wherever Slurm is not configless."""

    def of_node(self, instance_id: str) -> tuple[Mount, ...]:
        """With the folder of one node, on the machine's disk: what a node writes elsewhere is memory."""
        if self.unpacked is None:
            return self.mounts
        own = self.unpacked / instance_id
        own.mkdir(parents=True, exist_ok=True)
        return (*self.mounts, Mount(source=own, target=squashfs.UNPACKED))

    def forget(self, instance_id: str) -> None:
        """Remove what a node that is gone has unpacked."""
        if self.unpacked is not None:
            remove_tree_quietly(self.unpacked / instance_id)


def missing() -> list[str]:
    """Why this machine cannot offer ``--container-image``, each with what to do; empty if it can."""
    needed = {"runc": "runc"}
    problems = [
        f"the program {name} is missing; install Debian's package {package}"
        for name, package in needed.items()
        if shutil.which(name, path=SYSTEM_PATH) is None
    ]
    return [*problems, *cannot_compile()]


def prepare(*, home: Path) -> Parts:
    """
    Compile once per home and per version of sources and Slurm, in about half a second.

    A machine that cannot have containers gets nodes without them, and a line in the log that says why.
    """
    if problems := missing():
        _log.warning("srun --container-image is not available: %s", "; ".join(problems))
        return Parts()
    digest = hashlib.sha256(header_version().encode())
    for path in (*_SOURCES, *_HELPER):
        digest.update(path.name.encode() + b"\0" + path.read_bytes())
    place = home / "containers" / digest.hexdigest()[:16]
    try:
        if not place.is_dir():
            _render(place)
    except (OSError, subprocess.SubprocessError) as error:
        _log.warning("srun --container-image is not available: %s", error)
        return Parts()
    store = Store(home=home)
    store.create()
    return Parts(
        mounts=(
            Mount(source=place, target=TOOLS_AT, read_only=True),
            Mount(source=store.directory, target=IMAGES_AT, read_only=True),
        ),
        unpacked=home / "containers" / "unpacked",
        plugstack=plugstack_line(Path(TOOLS_AT) / PLUGIN) + "\n",
    )


def plugstack_line(plugin: Path) -> str:
    """
    The line of plugstack.conf for a plugin at this path of the nodes, with the helper in the folder of the plugin.

    The path is absolute and the line in plugstack.conf itself: configless Slurm hands that file out, and of files
    that it includes only those without a folder in their name.
    """
    return f"required {plugin} helper={plugin.parent} python={PYTHON} images={IMAGES_AT}"


def _render(place: Path) -> None:
    place.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=place.parent) as folder:
        fresh = Path(folder) / "tools"
        (fresh / "start").mkdir(parents=True)
        for path in _HELPER:
            shutil.copyfile(path, fresh / "start" / path.name)
        sources = [path for path in _SOURCES if path.suffix == ".c"]
        compile_plugin(sources, target=fresh / PLUGIN)
        try:
            fresh.rename(place)
        except OSError:
            if not place.is_dir():  # another process was faster
                raise
