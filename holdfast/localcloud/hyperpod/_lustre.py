"""
The Lustre stand-in: one directory per file system, and the data repository associations that link it with S3.

Which paths to copy is decided in ``_sync``; this lists, copies and keeps the book. A file is exported only when nobody
has it open for writing and it has been at rest, so a half-written file never reaches the bucket.
"""

import contextlib
import errno
import fcntl
import json
import logging
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

from boto3.exceptions import S3UploadFailedError
from botocore.exceptions import ClientError, ParamValidationError

from holdfast.localcloud.hyperpod._found import Found, scan
from holdfast.localcloud.hyperpod._model import Association, FileSystem
from holdfast.localcloud.hyperpod._sync import Entry, ObjectStat, plan, safe_path
from holdfast.localcloud.supervision import Complaints

REST_NS = 300_000_000
BIG_FILE = 64 << 20
DIRECTORY_MODE = 0o1777
FILE_MODE = 0o664
HIDDEN = ".holdfast-import."

_log = logging.getLogger(__name__)


_CONCERN_ALL = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EMFILE, errno.ENFILE, errno.ENOMEM)


class PathError(Exception):
    """One path cannot be copied, for a reason of its own."""


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


def _concerns_all(error: ClientError) -> bool:
    """Whether the service refuses everything and not this path."""
    status = int(error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 500))
    return status >= 500 or error.response["Error"]["Code"] == "NoSuchBucket"


def remove_tree(path: Path) -> None:
    """Delete a folder of any depth; ``shutil.rmtree`` ends with a RecursionError at a thousand levels."""
    subprocess.run(["rm", "--recursive", "--force", "--one-file-system", "--", str(path)], check=False, timeout=600)


def remove_others(home: Path, *, keep: frozenset[str]) -> None:
    """Delete stand-ins of file systems that do not exist any more."""
    parent = home / "fsx"
    if not parent.is_dir():
        return
    for entry in os.scandir(parent):
        if entry.name not in keep and entry.name.startswith("fs-"):
            remove_tree(Path(entry.path))


class Linked:
    """One association at work."""

    def __init__(self, *, association: Association, root: Path, books: Path, s3: Any) -> None:
        self.association = association
        self._root = root / association.path.strip("/")
        self._book_path = books / f"{association.association_id}.json"
        self._s3 = s3
        self._book = _load_book(self._book_path)
        self._refused: set[str] = set()
        self.complaints = Complaints(log=_log, what=f"data repository association {association.association_id}")

    def run_once(self, *, now_ns: Callable[[], int] = time.time_ns) -> Copied:
        """Bring both sides together, as far as the policies say."""
        _make_directories(self._root)
        link = self.association
        found = scan(self._root, at_rest_before_ns=now_ns() - REST_NS, hidden=HIDDEN)
        self._tell_unseen(found)
        known = {path: entry for path, entry in self._book.items() if found.has_seen(path)}
        # Without imports the bucket is only written to: what the book says of it is enough.
        objects = (
            self._listed() if link.imports else {p: ObjectStat(etag=e.etag, size=e.size) for p, e in known.items()}
        )
        objects = {path: one for path, one in objects.items() if found.has_seen(path)}
        todo = plan(objects=objects, files=found.files, book=known, imports=link.imports, exports=link.exports)
        wanted = {*todo.imports, *todo.exports, *todo.delete_files, *todo.delete_objects}
        self.complaints.settle_others(wanted | self._refused | found.unseen.keys())
        before = dict(self._book)
        try:
            imported = self._each(todo.imports, self._import)
            exported = self._each(todo.exports, self._export)
            deleted = self._each(todo.delete_files, self._delete_file)
            deleted += self._each(todo.delete_objects, self._delete_object)
            for path in (*deleted, *todo.forget):
                del self._book[path]
        finally:
            if self._book != before:
                self._save()
        size = sum(self._book[path].size for path in (*imported, *exported) if path in self._book)
        return Copied(imported=tuple(imported), exported=tuple(exported), nbytes=size)

    def _each(self, paths: Sequence[str], work: Callable[[str], bool]) -> list[str]:
        """Those with which it succeeded. What is wrong with one path is no reason to leave the others."""
        attempt = partial(self._attempt, work)
        return [path for path in paths if self.complaints.attempt(path, partial(attempt, path), failures=(PathError,))]

    def _attempt(self, work: Callable[[str], bool], path: str) -> bool:
        """``work``, with what is wrong with this path alone as ``PathError``; anything else ends the pass."""
        try:
            return work(path)
        except S3UploadFailedError as error:
            raise PathError(str(error)) from error
        except (ParamValidationError, ValueError, RuntimeError) as error:
            raise PathError(str(error) or type(error).__name__) from error
        except ClientError as error:
            if _concerns_all(error):
                raise
            raise PathError(str(error)) from error
        except OSError as error:
            if error.errno in _CONCERN_ALL:
                raise
            raise PathError(error.strerror or str(error)) from error

    def _tell_unseen(self, found: Found) -> None:
        for folder, why in found.unseen.items():
            self.complaints.tell(folder, why)

    def _delete_file(self, path: str) -> bool:
        (self._root / path).unlink(missing_ok=True)
        return True

    def _delete_object(self, path: str) -> bool:
        self._s3.delete_object(Bucket=self.association.bucket, Key=self.association.prefix + path)
        return True

    def _listed(self) -> dict[str, ObjectStat]:
        found = {}
        self._refused.clear()
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
        self._refused.add(key)
        self.complaints.tell(key, "the object is not imported: its key does not name a path below the file system")

    def _import(self, path: str) -> bool:
        target = self._root / path
        _make_directories(target.parent, below=self._root)
        if target.is_dir() or not _inside(target.parent, self._root):
            self._refuse(self.association.prefix + path)
            return False
        descriptor, temporary = tempfile.mkstemp(prefix=HIDDEN, dir=target.parent)
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
