"""
Resolve an image name: an image of the store, else a stand-in.

containerd resolves user names before the image's files are mounted, so a layer has the accounts.
"""

import contextlib
import importlib.util
import json
import platform
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from holdfast.localcloud.confined import Inside
from holdfast.localcloud.containers import ImageError, ImageStore, StoredImage
from holdfast.localcloud.nodes import REACHABLE

from .layers import Entry, Image, make_image
from .node_root import NodeRoot
from .stand_ins import StandIn, StandIns

LIBRARY = "/opt/holdfast/lib"
_ACCOUNTS = ("/etc/passwd", "/etc/group")
_MOST_ACCOUNTS_BYTES = 1 << 20
_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}


class ImageCatalog:
    def __init__(self, *, store: ImageStore, stand_ins: StandIns, root: NodeRoot) -> None:
        self._store, self._stand_ins, self._root = store, stand_ins, root

    def find(self, name: str) -> Image | None:
        """Return the image of ``REGISTRY/NAME:TAG``; None for a name with a digest: images made here have others."""
        if "@" in name:
            return None
        try:
            stored = self._store.find(name)
        except ImageError:
            return None
        if stored is not None:
            return self._stored(stored)
        stand_in = self._stand_ins.find(name)
        return None if stand_in is None else self._stand_in(stand_in)

    def _stored(self, stored: StoredImage) -> Image:
        folder = self._store.folder(stored)
        described: dict[str, Any] = json.loads((folder / "config.json").read_text())
        accounts = [Entry(path="/etc"), *_accounts(folder / "rootfs")]
        architecture = described.get("architecture") or _architecture()
        return make_image(
            files=folder.name, entries=accounts, config=described.get("config") or {}, architecture=architecture
        )

    def _stand_in(self, row: StandIn) -> Image:
        entries = [*self._root.entries(), *row.entries()]
        if row.packages:
            entries.append(Entry(path=LIBRARY))
            entries += [entry for package in row.packages for entry in _package(package)]
        files = "node"
        if row.file_systems:
            files = "node-with-file-systems"
            entries += [Entry(path=str(path)) for path in [*reversed(Path(REACHABLE).parents), Path(REACHABLE)][2:]]
        return make_image(files=files, entries=entries, config=row.config(), architecture=_architecture())


def _accounts(root: Path) -> Iterator[Entry]:
    """Read accounts of an untrusted image: a link may lead anywhere, a file may have any size."""
    for path in _ACCOUNTS:
        with contextlib.suppress(OSError), Inside(root=root, path=path).open("rb") as file:
            yield Entry(path=path, content=file.read(_MOST_ACCOUNTS_BYTES), mode=0o644)


def _package(name: str) -> Iterator[Entry]:
    found = importlib.util.find_spec(name)
    if found is None or found.origin is None:
        return
    top = Path(found.origin).parent
    yield Entry(path=f"{LIBRARY}/{name}")
    for path in sorted(top.rglob("*")):
        place = f"{LIBRARY}/{name}/{path.relative_to(top)}"
        if "__pycache__" in path.parts or path.is_symlink():
            continue
        if path.is_dir():
            yield Entry(path=place)
        elif path.is_file():
            yield Entry(path=place, content=path.read_bytes(), mode=0o644)


def _architecture() -> str:
    return _ARCHITECTURES.get(platform.machine(), platform.machine())
