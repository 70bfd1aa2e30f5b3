"""Code and layers of functions as folders, unpacked once per content."""

import hashlib
import io
import os
import stat
import threading
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path, PurePosixPath

from holdfast.localcloud.home import remove_tree

LARGEST_BYTES = 250 << 20
"""Lambda's quota for a function's code with its layers, unzipped (Lambda developer guide, gettingstarted-limits,
2026-11)."""
CHUNK_BYTES = 1 << 20


class PackageError(Exception): ...


class Packages:
    """Folders of unpacked archives, immutable and complete."""

    _lock = threading.Lock()
    """Of all of them: a deployment asks for the same layer from many threads."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def unpacked(self, known_by: str, *, fetch: Sequence[Callable[[], bytes]]) -> Path:
        """Return the folder of archives, later ones over earlier ones. Raise PackageError for unsafe archives."""
        folder = self._folder / hashlib.sha256(known_by.encode()).hexdigest()
        with self._lock:
            if folder.is_dir():
                return folder
            self._folder.mkdir(mode=0o711, exist_ok=True)
            part = folder.with_name(f"{folder.name}.part")
            remove_tree(part)
            part.mkdir(mode=0o755)
            left = LARGEST_BYTES
            for one in fetch:
                left = _unpack(one(), part, left)
            for each in (part, *part.rglob("*")):
                if each.is_dir():
                    each.chmod(0o755)  # whatever files this process makes, functions are another user
            part.rename(folder)
            return folder


def _unpack(archive: bytes, folder: Path, left: int) -> int:
    try:
        with zipfile.ZipFile(io.BytesIO(archive)) as opened:
            for entry in opened.infolist():
                path, mode = PurePosixPath(entry.filename), entry.external_attr >> 16
                if path.is_absolute() or ".." in path.parts or stat.S_IFMT(mode) not in (0, stat.S_IFREG, stat.S_IFDIR):
                    raise PackageError(f"got entry '{entry.filename}'; allowed: plain files below the archive's root")
                target = folder / path
                if entry.is_dir():
                    target.mkdir(parents=True, exist_ok=True)
                    continue
                target.parent.mkdir(parents=True, exist_ok=True)
                left = _copy(opened, entry, target, left)
                # Lambda reads files as another user, too (developer guide, python-package, "permissions").
                target.chmod(0o755 if mode & stat.S_IXUSR else 0o644)
    except zipfile.BadZipFile as error:
        raise PackageError(f"got an archive that is no zip file: {error}") from None
    return left


def _copy(opened: zipfile.ZipFile, entry: zipfile.ZipInfo, target: Path, left: int) -> int:
    with opened.open(entry) as source, target.open("wb") as sink:
        while chunk := source.read(CHUNK_BYTES):
            left -= len(chunk)
            if left < 0:
                raise PackageError(f"got more than {LARGEST_BYTES} bytes unzipped, which is Lambda's quota")
            sink.write(chunk)
        os.fchmod(sink.fileno(), 0o644)
    return left
