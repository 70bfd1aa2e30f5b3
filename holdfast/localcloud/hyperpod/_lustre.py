"""
The Lustre stand-in: one directory per file system, and the data repository associations that link it with S3.

Which paths to copy is decided in ``_sync``; this lists, copies and keeps the book. A file is exported only when nobody
has it open for writing and it has been at rest, so a half-written file never reaches the bucket.
"""

import contextlib
import fcntl
import json
import logging
import os
import shutil
import signal
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from holdfast.localcloud.home import remove_tree_quietly
from holdfast.localcloud.hyperpod._model import Association, FileSystem
from holdfast.localcloud.hyperpod._sync import Entry, FileStat, ObjectStat, plan, safe_path

REST_NS = 300_000_000
BIG_FILE = 64 << 20
DIRECTORY_MODE = 0o1777
FILE_MODE = 0o664
_HIDDEN = ".holdfast-import."

_log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class Copied:
    """What one pass over an association did."""

    imported: tuple[str, ...] = ()
    exported: tuple[str, ...] = ()
    nbytes: int = 0


def file_system_path(home: Path, file_system_id: str) -> Path:
    return home / "fsx" / file_system_id


def ensure_directory(home: Path, file_system: FileSystem) -> Path:
    """The stand-in's directory, created when missing; any user of a node may create below it."""
    path = file_system_path(home, file_system.file_system_id)
    if not path.is_dir():
        path.mkdir(parents=True, exist_ok=True)
        path.chmod(DIRECTORY_MODE)
    return path


def remove_others(home: Path, *, keep: frozenset[str]) -> None:
    """Delete stand-ins of file systems that do not exist any more."""
    parent = home / "fsx"
    if not parent.is_dir():
        return
    for entry in os.scandir(parent):
        if entry.name not in keep and entry.name.startswith("fs-"):
            remove_tree_quietly(Path(entry.path))


class Linked:
    """One association at work."""

    def __init__(self, *, association: Association, root: Path, books: Path, s3: Any) -> None:
        self.association = association
        self._root = root / association.path.strip("/")
        self._book_path = books / f"{association.association_id}.json"
        self._s3 = s3
        self._book = _load_book(self._book_path)
        self._refused: set[str] = set()

    def run_once(self, *, now_ns: Callable[[], int] = time.time_ns) -> Copied:
        """Bring both sides together, as far as the policies say."""
        _make_directories(self._root)
        link = self.association
        # Without imports the bucket is only written to: what the book says of it is enough.
        objects = (
            self._listed() if link.imports else {p: ObjectStat(etag=e.etag, size=e.size) for p, e in self._book.items()}
        )
        files = dict(_scan(self._root, at_rest_before_ns=now_ns() - REST_NS))
        todo = plan(objects=objects, files=files, book=self._book, imports=link.imports, exports=link.exports)
        before = dict(self._book)
        imported = [path for path in todo.imports if self._import(path)]
        exported = [path for path in todo.exports if self._export(path)]
        for path in todo.delete_files:
            (self._root / path).unlink(missing_ok=True)
            del self._book[path]
        for path in todo.delete_objects:
            self._s3.delete_object(Bucket=link.bucket, Key=link.prefix + path)
            del self._book[path]
        for path in todo.forget:
            del self._book[path]
        if self._book != before:
            self._save()
        size = sum(self._book[path].size for path in (*imported, *exported) if path in self._book)
        return Copied(imported=tuple(imported), exported=tuple(exported), nbytes=size)

    def _listed(self) -> dict[str, ObjectStat]:
        found = {}
        pages = self._s3.get_paginator("list_objects_v2").paginate(
            Bucket=self.association.bucket, Prefix=self.association.prefix
        )
        for page in pages:
            for item in page.get("Contents", ()):
                relative = item["Key"][len(self.association.prefix) :]
                if not relative or relative.endswith("/"):
                    continue
                path = safe_path(relative)
                if path is None:
                    self._refuse(item["Key"])
                    continue
                found[path] = ObjectStat(etag=item["ETag"], size=item["Size"])
        return found

    def _refuse(self, key: str) -> None:
        if key not in self._refused:
            self._refused.add(key)
            _log.warning("object %r is not imported: its key does not name a path below the file system", key)

    def _import(self, path: str) -> bool:
        target = self._root / path
        _make_directories(target.parent, below=self._root)
        if target.is_dir() or not _inside(target.parent, self._root):
            self._refuse(self.association.prefix + path)
            return False
        descriptor, temporary = tempfile.mkstemp(prefix=_HIDDEN, dir=target.parent)
        try:
            with os.fdopen(descriptor, "wb") as file:
                answer = self._s3.get_object(Bucket=self.association.bucket, Key=self.association.prefix + path)
                shutil.copyfileobj(answer["Body"], file, 1 << 20)
                os.fchmod(file.fileno(), FILE_MODE)
            os.replace(temporary, target)  # noqa: PTH105  one atomic step
        except BaseException:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(temporary)  # noqa: PTH108
            raise
        info = target.stat()
        self._book[path] = Entry(etag=answer["ETag"], size=info.st_size, mtime_ns=info.st_mtime_ns)
        return True

    def _export(self, path: str) -> bool:
        key = self.association.prefix + path
        try:
            descriptor = os.open(self._root / path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
        except OSError:
            return False
        with os.fdopen(descriptor, "rb") as file:
            if not _nobody_writes(descriptor):
                return False
            before = os.fstat(descriptor)
            if before.st_size > BIG_FILE:
                self._s3.upload_fileobj(_KeptOpen(file), self.association.bucket, key)
                etag = self._s3.head_object(Bucket=self.association.bucket, Key=key)["ETag"]
            else:
                content = file.read()
                after = os.fstat(descriptor)
                if (after.st_size, after.st_mtime_ns) != (before.st_size, before.st_mtime_ns):
                    return False
                etag = self._s3.put_object(Bucket=self.association.bucket, Key=key, Body=content)["ETag"]
        self._book[path] = Entry(etag=etag, size=before.st_size, mtime_ns=before.st_mtime_ns)
        return True

    def _save(self) -> None:
        self._book_path.parent.mkdir(parents=True, exist_ok=True)
        fresh = self._book_path.with_suffix(".new")
        fresh.write_text(json.dumps({path: asdict(entry) for path, entry in self._book.items()}))
        os.replace(fresh, self._book_path)  # noqa: PTH105


class _KeptOpen:
    """A file that the transfer manager reads but must not close."""

    def __init__(self, file: Any) -> None:
        self._file = file

    def read(self, size: int = -1) -> bytes:
        data: bytes = self._file.read(size)
        return data


def _load_book(path: Path) -> dict[str, Entry]:
    try:
        return {name: Entry(**entry) for name, entry in json.loads(path.read_text()).items()}
    except (FileNotFoundError, ValueError, TypeError):
        return {}


def _make_directories(path: Path, *, below: Path | None = None) -> None:
    """``path`` and its missing parents, each open to the users of the nodes."""
    missing = []
    while not path.exists() and path != below:
        missing.append(path)
        path = path.parent
    for one in reversed(missing):
        one.mkdir(exist_ok=True)
        one.chmod(DIRECTORY_MODE)


def _inside(path: Path, root: Path) -> bool:
    """No symbolic link, which a user of a node may have made, leads out of the file system."""
    return path.is_dir() and path.resolve().is_relative_to(root.resolve())


def _scan(root: Path, *, at_rest_before_ns: int, prefix: str = "") -> Iterator[tuple[str, FileStat]]:
    """Regular files below ``root``, with whether they have been left alone for a while."""
    try:
        entries = list(os.scandir(root))
    except (FileNotFoundError, NotADirectoryError):
        return
    for entry in entries:
        with contextlib.suppress(FileNotFoundError):
            if entry.is_dir(follow_symlinks=False):
                yield from _scan(Path(entry.path), at_rest_before_ns=at_rest_before_ns, prefix=f"{prefix}{entry.name}/")
            elif entry.is_file(follow_symlinks=False) and not entry.name.startswith(_HIDDEN):
                info = entry.stat(follow_symlinks=False)
                yield (
                    f"{prefix}{entry.name}",
                    FileStat(
                        size=info.st_size, mtime_ns=info.st_mtime_ns, at_rest=info.st_mtime_ns < at_rest_before_ns
                    ),
                )


def _nobody_writes(descriptor: int) -> bool:
    """A read lease is granted only while no process has the file open for writing."""
    try:
        # SIGURG is ignored by default; a lease broken in this moment would otherwise end the process by SIGIO.
        fcntl.fcntl(descriptor, 10, signal.SIGURG)  # F_SETSIG
        fcntl.fcntl(descriptor, fcntl.F_SETLEASE, fcntl.F_RDLCK)
        fcntl.fcntl(descriptor, fcntl.F_SETLEASE, fcntl.F_UNLCK)
    except BlockingIOError:
        return False
    except OSError:
        return True
    return True
