"""
Images of one local cloud, unpacked, read-only for nodes.

``images/sha256-<digest>/rootfs`` and ``config.json`` (OCI image configuration); ``images/refs/<name>`` is a link to
one. A name that moves leaves the old image: steps may use it.
"""

import contextlib
import fcntl
import json
import os
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from holdfast.localcloud.containers.start import errors
from holdfast.localcloud.containers.start import reference as reference_command

_UNPACKING = ".unpacking-"
_DIGEST = re.compile(r"sha256[:-]([0-9a-f]{64})")


class ImageError(Exception):
    """An image cannot be stored or removed; the message has the fix."""


@dataclass(frozen=True, kw_only=True)
class StoredImage:
    name: str
    digest: str
    """``sha256:...`` of the image's configuration."""


class ImageStore:
    def __init__(self, *, home: Path) -> None:
        self.directory = home / "images"
        self._refs = self.directory / "refs"

    def create(self) -> None:
        """Create the empty store, which nodes mount at boot."""
        self._refs.mkdir(parents=True, exist_ok=True)

    def list(self) -> tuple[StoredImage, ...]:
        links = sorted(self._refs.iterdir()) if self._refs.is_dir() else []
        return tuple(
            StoredImage(name=unquote(link.name), digest=f"sha256:{match[1]}")
            for link in links
            if (match := _DIGEST.fullmatch(link.readlink().name))
        )

    def find(self, name: str) -> StoredImage | None:
        """Return the image of a name in any form, or None. Raise ImageError for an invalid name."""
        reference = _canonical(name)
        return next((image for image in self.list() if image.name == reference), None)

    def folder(self, image: StoredImage) -> Path:
        return self.directory / image.digest.replace(":", "-")

    def add(self, name: str, *, digest: str, config: Mapping[str, Any], unpack: Callable[[Path], None]) -> StoredImage:
        """Store an image under ``name``; ``unpack`` is called unless its files are stored."""
        reference = _canonical(name)
        match = _DIGEST.fullmatch(digest)
        if match is None:
            raise ImageError(f"a digest is sha256: and 64 hexadecimal digits, got {digest!r}")
        place = self.directory / f"sha256-{match[1]}"
        self.create()
        with self._locked():
            if not place.is_dir():
                for left in self.directory.glob(f"{_UNPACKING}*"):  # of an adding that was killed
                    shutil.rmtree(left)
                with tempfile.TemporaryDirectory(dir=self.directory, prefix=_UNPACKING) as folder:
                    fresh = Path(folder) / "image"
                    (fresh / "rootfs").mkdir(parents=True)
                    unpack(fresh / "rootfs")
                    (fresh / "config.json").write_text(json.dumps(dict(config), indent=1) + "\n")
                    fresh.rename(place)
            self._point(reference, to=place.name)
        return StoredImage(name=reference, digest=f"sha256:{match[1]}")

    def _point(self, reference: str, *, to: str) -> None:
        link = self._refs / reference_command.file_name(reference)
        fresh = link.with_name(f"{link.name}.{os.getpid()}.new")
        fresh.symlink_to(Path("..") / to)
        fresh.replace(link)

    def remove(self, name: str) -> None:
        """Forget a name, and the image without other names. No step may use it."""
        reference = _canonical(name)
        link = self._refs / reference_command.file_name(reference)
        with self._locked():
            if not link.is_symlink():
                known = ", ".join(image.name for image in self.list()) or "none"
                raise ImageError(f"no image {reference}; existing images: {known}")
            link.unlink()
            used = {other.readlink().name for other in self._refs.iterdir()}
            for place in self.directory.glob("sha256-*"):
                if place.name not in used:
                    shutil.rmtree(place)

    @contextlib.contextmanager
    def _locked(self) -> Iterator[None]:
        self.create()
        with (self.directory / ".lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield


def _canonical(name: str) -> str:
    try:
        return reference_command.canonical(name)
    except errors.RefusedError as error:
        raise ImageError(str(error)) from error
