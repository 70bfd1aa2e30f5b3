"""Parts of nodes for containers: compiled Slurm plugin, helper, images."""

import hashlib
import logging
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from holdfast.localcloud.containers.start import squashfs
from holdfast.localcloud.containers.store import ImageStore
from holdfast.localcloud.home import made_once, remove_tree_quietly
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
class ContainerParts:
    mounts: tuple[Mount, ...] = ()
    unpacked: Path | None = None
    """Folder of the machine with a folder per node for its image files. Default: nodes have no containers"""
    plugstack: str = ""
    """plugstack.conf, on the controller and wherever Slurm is not configless."""

    def of_node(self, instance_id: str) -> tuple[Mount, ...]:
        """Return the parts with a node's folder on the machine's disk: what a node writes elsewhere is memory."""
        if self.unpacked is None:
            return self.mounts
        own = self.unpacked / instance_id
        own.mkdir(parents=True, exist_ok=True)
        return (*self.mounts, Mount(source=own, target=squashfs.UNPACKED))

    def forget(self, instance_id: str) -> None:
        """Remove the images that a removed node has unpacked."""
        if self.unpacked is not None:
            remove_tree_quietly(self.unpacked / instance_id)


def missing() -> list[str]:
    """Return why this machine has no ``--container-image``, each with the fix."""
    needed = {"runc": "runc"}
    problems = [
        f"the program {name} is missing; install Debian's package {package}"
        for name, package in needed.items()
        if shutil.which(name, path=SYSTEM_PATH) is None
    ]
    return [*problems, *cannot_compile()]


def prepare(*, home: Path) -> ContainerParts:
    """Compile once per home and version, in about half a second. On failure nodes boot without containers."""
    if problems := missing():
        _log.warning("srun --container-image is not available: %s", "; ".join(problems))
        return ContainerParts()
    digest = hashlib.sha256(header_version().encode())
    for path in (*_SOURCES, *_HELPER):
        digest.update(path.name.encode() + b"\0" + path.read_bytes())
    place = home / "containers" / digest.hexdigest()[:16]
    try:
        if not place.is_dir():
            _render(place)
    except (OSError, subprocess.SubprocessError) as error:
        _log.warning("srun --container-image is not available: %s", error)
        return ContainerParts()
    store = ImageStore(home=home)
    store.create()
    return ContainerParts(
        mounts=(
            Mount(source=place, target=TOOLS_AT, read_only=True),
            Mount(source=store.directory, target=IMAGES_AT, read_only=True),
        ),
        unpacked=home / "containers" / "unpacked",
        plugstack=plugstack_line(Path(TOOLS_AT) / PLUGIN) + "\n",
    )


def plugstack_line(plugin: Path) -> str:
    """
    Return plugstack.conf's line for a plugin at this path of the nodes, with the helper in its folder.

    The path is absolute and in plugstack.conf itself: configless Slurm distributes included files without a folder
    only.
    """
    return f"required {plugin} helper={plugin.parent} python={PYTHON} images={IMAGES_AT}"


def _render(place: Path) -> None:
    with made_once(place) as fresh:
        (fresh / "start").mkdir()
        for path in _HELPER:
            shutil.copyfile(path, fresh / "start" / path.name)
        sources = [path for path in _SOURCES if path.suffix == ".c"]
        compile_plugin(sources, target=fresh / PLUGIN)
