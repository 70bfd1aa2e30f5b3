"""
Lustre stand-in: a directory per file system, and data repository associations with S3.

``sync`` plans, this module lists, copies and records. A file is exported only when it is at rest without a writer, so a
half-written file never reaches the bucket. Root works in folders of the nodes' users: paths are opened beneath the file
system, without links.
"""

import errno
import fcntl
import json
import logging
import os
import shutil
import signal
import stat
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

from boto3.exceptions import S3UploadFailedError
from botocore.exceptions import ClientError, ParamValidationError

from holdfast.localcloud.confined import Inside, Links, safe_path
from holdfast.localcloud.fsx import of_metadata, to_metadata
from holdfast.localcloud.home import remove_tree_quietly, spared, write_private
from holdfast.localcloud.hyperpod.fsx.found import ScanResult
from holdfast.localcloud.hyperpod.fsx.sync import FileStat, ObjectStat, SyncEntry, plan
from holdfast.localcloud.hyperpod.model import Association, FileSystem
from holdfast.localcloud.supervision import Complaints

REST_NS = 300_000_000
BIG_FILE = 64 << 20
DIRECTORY_MODE = 0o1777
LONGEST_KEY = 1024
"""Bytes of an S3 key (S3 user guide, "Naming Amazon S3 objects")."""
NO_PLACE = "its key is no valid path below the file system"
_HIDDEN = ".holdfast-import."
_NO_PLACE = frozenset(
    {errno.ELOOP, errno.EXDEV, errno.ENOTDIR, errno.EISDIR, errno.EPERM, errno.EEXIST, errno.ENAMETOOLONG, errno.EINVAL}
)
"""Errors of the file system for a path that is taken, or leads out."""
_GONE = frozenset({errno.ENOENT, errno.ENOTDIR, errno.ELOOP})
_CONCERN_ALL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EMFILE, errno.ENFILE, errno.ENOMEM})

_log = logging.getLogger(__name__)


class PathError(Exception): ...


@dataclass(frozen=True, kw_only=True)
class SyncResult:
    imported: tuple[str, ...] = ()
    exported: tuple[str, ...] = ()
    nbytes: int = 0


def file_system_path(home: Path, file_system_id: str) -> Path:
    return home / "fsx" / file_system_id


def ensure_directory(home: Path, file_system: FileSystem) -> Path:
    """Create the stand-in's directory; any user of a node may write below it."""
    path = file_system_path(home, file_system.file_system_id)
    if not path.is_dir():
        path.mkdir(parents=True, exist_ok=True)
        path.chmod(DIRECTORY_MODE)
    return path


def remove_others(home: Path, *, keep: frozenset[str]) -> None:
    """Delete stand-ins of file systems that exist neither now nor in rejected state."""
    parent = home / "fsx"
    if not parent.is_dir():
        return
    keep |= spared(home)
    for entry in os.scandir(parent):
        if entry.name not in keep and entry.name.startswith("fs-"):
            remove_tree_quietly(Path(entry.path))


class AssociationSync:
    def __init__(self, *, association: Association, root: Path, books: Path, s3: Any) -> None:
        self.association = association
        self._file_system = root
        self._folder = association.path.strip("/")
        self._book_path = books / f"{association.association_id}.json"
        self._s3 = s3
        self._book = _load_book(self._book_path)
        self._refused: set[str] = set()
        """Names that cannot be copied at all, as the present pass finds them."""
        self.complaints = Complaints(log=_log, what=f"data repository association {association.association_id}")

    def run_once(self, *, now_ns: Callable[[], int] = time.time_ns) -> SyncResult:
        """Synchronize both sides by the policies. Raise OSError if the folder leads out of the file system."""
        link = self.association
        self._refused.clear()
        found = self._scan(at_rest_before_ns=now_ns() - REST_NS)
        known = {path: entry for path, entry in self._book.items() if found.has_seen(path)}
        # Without imports the bucket is only written to: what the book says of it is enough.
        objects = (
            self._listed() if link.imports else {p: ObjectStat(etag=e.etag, size=e.size) for p, e in known.items()}
        )
        objects = {path: one for path, one in objects.items() if found.has_seen(path)}
        todo = plan(objects=objects, files=found.files, book=known, imports=link.imports, exports=link.exports)
        desired = {*todo.imports, *todo.exports, *todo.delete_files, *todo.delete_objects}
        self.complaints.settle_others(desired | self._refused)
        before = dict(self._book)
        try:
            imported = self._each(todo.imports, self._import)
            exported = self._each(todo.exports, self._export)
            deleted = self._each(todo.delete_files, self._delete)
            deleted += self._each(todo.delete_objects, self._delete_object)
            for path in (*deleted, *todo.forget):
                del self._book[path]
        finally:
            if self._book != before:
                self._save()
        size = sum(self._book[path].size for path in (*imported, *exported) if path in self._book)
        return SyncResult(imported=tuple(imported), exported=tuple(exported), nbytes=size)

    def _inside(self, path: str) -> Inside:
        return Inside(root=self._file_system, path=f"{self._folder}/{path}".strip("/"), links=Links.REFUSED)

    def _each(self, paths: Sequence[str], work: Callable[[str], bool]) -> list[str]:
        attempt = partial(_alone, work)
        return [path for path in paths if self.complaints.attempt(path, partial(attempt, path), failures=(PathError,))]

    def _delete_object(self, path: str) -> bool:
        self._s3.delete_object(Bucket=self.association.bucket, Key=self.association.prefix + path)
        return True

    def _scan(self, *, at_rest_before_ns: int) -> ScanResult:
        folders = [""]
        files: dict[str, FileStat] = {}
        unseen: list[str] = []
        while folders:
            folder = folders.pop()
            try:
                with self._inside(folder).directory(make=None if folder else DIRECTORY_MODE) as descriptor:
                    entries = list(os.scandir(descriptor))
                    stats = [(entry.name, _stat_of(entry)) for entry in entries]
            except OSError as error:
                if not folder:
                    raise
                if error.errno not in _GONE:
                    unseen.append(f"{folder}/")
                    self._refuse(f"{folder}/", f"the folder cannot be read: {error.strerror}")
                continue
            for name, info in stats:
                path = f"{folder}/{name}" if folder else name
                if info is None or not self._can_be_key(path):
                    continue
                if stat.S_ISDIR(info.st_mode):
                    folders.append(path)
                elif stat.S_ISREG(info.st_mode) and not name.startswith(_HIDDEN):
                    at_rest = info.st_mtime_ns < at_rest_before_ns
                    files[path] = FileStat(size=info.st_size, mtime_ns=info.st_mtime_ns, at_rest=at_rest)
        return ScanResult(files=files, unseen=tuple(unseen))

    def _can_be_key(self, path: str) -> bool:
        try:
            if len((self.association.prefix + path).encode()) <= LONGEST_KEY:
                return True
        except UnicodeEncodeError:
            pass
        if self.association.exports:
            self._refuse(path, f"not exported: an S3 key has at most {LONGEST_KEY} bytes of UTF-8")
        return False

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
                    self._refuse(item["Key"], f"not imported: {NO_PLACE}")
                    continue
                found[path] = ObjectStat(etag=item["ETag"], size=item["Size"])
        return found

    def _refuse(self, name: str, why: str) -> None:
        self._refused.add(name)
        self.complaints.record(name, why)

    def _import(self, path: str) -> bool:
        key = self.association.prefix + path
        if self._inside(path).is_directory():
            raise PathError(f"not imported: {NO_PLACE}")
        try:
            with self._inside(path).fresh(make=DIRECTORY_MODE, prefix=_HIDDEN) as file:
                answer = self._s3.get_object(Bucket=self.association.bucket, Key=key)
                shutil.copyfileobj(answer["Body"], file, 1 << 20)
                file.flush()
                _set_attributes(file.fileno(), answer.get("Metadata") or {})
                info = os.fstat(file.fileno())
        except OSError as error:
            if error.errno not in _NO_PLACE:
                raise
            raise PathError(f"not imported: {NO_PLACE}") from error
        self._book[path] = SyncEntry(etag=answer["ETag"], size=info.st_size, mtime_ns=info.st_mtime_ns)
        return True

    def _delete(self, path: str) -> bool:
        """Delete a file; return True if it is gone. If it was replaced meanwhile, the next pass decides."""
        try:
            self._inside(path).unlink()
        except OSError as error:
            if error.errno not in _NO_PLACE:
                raise
            return False
        return True

    def _export(self, path: str) -> bool:
        key = self.association.prefix + path
        try:
            file = self._inside(path).open("rb")
        except OSError:
            return False
        with file:
            if not _has_no_writer(file.fileno()):
                return False
            before = os.fstat(file.fileno())
            metadata = to_metadata(
                mode=before.st_mode, owner=before.st_uid, group=before.st_gid, mtime_ns=before.st_mtime_ns
            )
            if before.st_size > BIG_FILE:
                more = {"Metadata": metadata}
                self._s3.upload_fileobj(_KeptOpen(file), self.association.bucket, key, ExtraArgs=more)
                etag = self._s3.head_object(Bucket=self.association.bucket, Key=key)["ETag"]
            else:
                content = file.read()
                after = os.fstat(file.fileno())
                if (after.st_size, after.st_mtime_ns) != (before.st_size, before.st_mtime_ns):
                    return False
                put = self._s3.put_object(Bucket=self.association.bucket, Key=key, Body=content, Metadata=metadata)
                etag = put["ETag"]
        self._book[path] = SyncEntry(etag=etag, size=before.st_size, mtime_ns=before.st_mtime_ns)
        return True

    def _save(self) -> None:
        self._book_path.parent.mkdir(parents=True, exist_ok=True)
        write_private(self._book_path, json.dumps({path: asdict(entry) for path, entry in self._book.items()}).encode())


def _alone(work: Callable[[str], bool], path: str) -> bool:
    """Run ``work``; errors of this path alone become ``PathError``, others end the pass."""
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


def _concerns_all(error: ClientError) -> bool:
    status = int(error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 500))
    return status >= 500 or error.response["Error"]["Code"] == "NoSuchBucket"


def _set_attributes(descriptor: int, metadata: Mapping[str, str]) -> None:
    """Set owner, mode and time of an imported file, in an order that keeps all three."""
    posix = of_metadata(metadata)
    if posix.owner is not None or posix.group is not None:
        os.fchown(descriptor, -1 if posix.owner is None else posix.owner, -1 if posix.group is None else posix.group)
    os.fchmod(descriptor, posix.mode)
    if posix.mtime_ns is not None:
        os.utime(descriptor, ns=(posix.mtime_ns, posix.mtime_ns))


class _KeptOpen:
    def __init__(self, file: Any) -> None:
        self._file = file

    def read(self, size: int = -1) -> bytes:
        data: bytes = self._file.read(size)
        return data


def _load_book(path: Path) -> dict[str, SyncEntry]:
    try:
        return {name: SyncEntry(**entry) for name, entry in json.loads(path.read_text()).items()}
    except (FileNotFoundError, ValueError, TypeError):
        return {}


def _stat_of(entry: "os.DirEntry[str]") -> os.stat_result | None:
    try:
        return entry.stat(follow_symlinks=False)
    except OSError:
        return None


def _has_no_writer(descriptor: int) -> bool:
    """Return True if no process has the file open for writing: only then a read lease is granted."""
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
