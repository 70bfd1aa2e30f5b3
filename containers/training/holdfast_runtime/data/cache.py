"""
What an expensive decoder made, kept in memory for all ranks of a node: images, audio, video frames.

Entries are files in shared memory (/dev/shm), named by a digest of what was decoded and how. So a rank finds what
another one, or a dead one, has decoded, and a mapped entry costs no copy. Tokens need none of this: they are mapped as
they are.

Nobody keeps books that a kill could falsify: every claim is a kernel lock, which ends with its process.

    <folder>/used            everyone that uses the cache has it locked, shared
    <folder>/books           bytes reserved; read and written under its lock
    <folder>/<key>.entry     whole, renamed into place
    <folder>/<key>.partial   being decoded; its writer has it locked, so one that is not locked is of the dead
"""

import contextlib
import errno
import fcntl
import hashlib
import io
import os
import struct
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from holdfast_runtime.control import CACHE_ROOT as ROOT
from holdfast_runtime.control import CACHE_VARIABLE as VARIABLE
from holdfast_runtime.control import cache_folder, open_unbuffered, use_folder
from holdfast_runtime.data.format import DataError

_KEEP = 0.9
_WAIT_S = 0.002
_LONGEST_WAIT_S = 0.05
_BOOKS = struct.Struct("<Q")
Array = npt.NDArray[Any]


class DecodedCache(AbstractContextManager["DecodedCache"]):
    """
    A cache of arrays, one per node and job.

    Args:
        job: names the cache; the same on all ranks of a node. Default: the one that this process's launcher owns, and
            removes at the end.
        limit_bytes: that entries and unfinished ones may take. Entries that were not used for long go first; memory
            of one that a process has mapped is free when it lets go.
        wait_s: how long to wait for another process that decodes the same, before decoding it here. Default: 60
        root: a folder in memory. Default: /dev/shm
    """

    def __init__(self, job: str | None = None, *, limit_bytes: int, wait_s: float = 60.0, root: Path = ROOT) -> None:
        if limit_bytes < 1:
            raise DataError(f"limit_bytes must be positive, got {limit_bytes}")
        if job is None and VARIABLE not in os.environ:
            raise DataError("no launcher owns a cache here; start the script with holdfast-run, or name the job")
        self.limit_bytes = limit_bytes
        self._wait_s = wait_s
        try:
            self.folder = cache_folder(os.environ[VARIABLE] if job is None else job, root=root)
            self._used = use_folder(self.folder)
        except (ValueError, OSError) as error:
            raise DataError(f"{error}") from None
        with self._books() as books:
            _record(books, self._make_room(0))

    def get(self, content: bytes, decode: Callable[[bytes], Array], *, decoder: str) -> Array:
        """
        What ``decode(content)`` gives, from memory when anyone on this node has done it before.

        Args:
            content: what is decoded.
            decode: gives an array of a plain type.
            decoder: name and version of the decoder with its settings; part of the key.
        """
        name = decoder.encode()
        digest = hashlib.blake2b(struct.pack("<Q", len(name)) + name, digest_size=20)
        digest.update(content)
        entry = self.folder / f"{digest.hexdigest()}.entry"
        deadline = time.monotonic() + self._wait_s
        pause = _WAIT_S
        while (found := _mapped(entry)) is None:
            with self._claim(entry) as partial:
                if partial is not None:
                    return self._store(entry, partial, decode(content))
            if time.monotonic() > deadline:
                return decode(content)
            time.sleep(pause)
            pause = min(2 * pause, _LONGEST_WAIT_S)
        return found

    def size(self) -> int:
        """Bytes of all entries, and of what dead and living writers have not finished."""
        return sum(size for _, size, _ in self._files())

    def close(self) -> None:
        """Stop using the cache. It stays for others."""
        self._used.close()

    def __exit__(self, *_: object) -> None:
        self.close()

    @contextmanager
    def _claim(self, entry: Path) -> Iterator[BinaryIO | None]:
        """The locked file to decode into, or None when another process has it."""
        path = entry.with_suffix(".partial")
        with contextlib.ExitStack() as stack:
            with self._books():
                file = stack.enter_context(open_unbuffered(path))
                if entry.exists() or not _lock(file):
                    yield None
                    return
                file.truncate(0)
            try:
                yield file
            finally:
                with self._books():
                    if _is_at(file, path):
                        path.unlink()

    def _store(self, entry: Path, partial: BinaryIO, decoded: Array) -> Array:
        """Publish what was decoded. Without room for it, it is only handed on."""
        array = np.asarray(decoded, order="C")
        header = io.BytesIO()
        np.lib.format.write_array_header_2_0(header, np.lib.format.header_data_from_array_1_0(array))
        if array.dtype.hasobject:
            raise DataError(f"a decoder has to give an array of a plain type, got {array.dtype}")
        if self._reserve(partial, header.tell() + array.nbytes):
            try:
                _write(partial, memoryview(header.getvalue()))
                _write(partial, array.reshape(-1).view(np.uint8).data)
            except OSError as error:
                if error.errno != errno.ENOSPC:
                    raise
            else:
                with self._books():
                    entry.with_suffix(".partial").rename(entry)
        handed_on = array.view()
        handed_on.setflags(write=False)
        return handed_on

    def _reserve(self, partial: BinaryIO, size: int) -> bool:
        """Count bytes that are about to be written, after others have made room. The file has that length at once."""
        if size > self.limit_bytes:
            return False
        with self._books() as books:
            total = _recorded(books)
            if total + size > self.limit_bytes:
                total = self._make_room(size)
            fits = total + size <= self.limit_bytes
            if fits:
                partial.truncate(size)
            _record(books, total + size * fits)
            return fits

    def _make_room(self, size: int) -> int:
        """Remove what the dead left and what was not used for long; what is left, counted anew. Needs the books."""
        files = self._files()
        total = sum(bytes_ for _, bytes_, _ in files)
        goal = min(int(self.limit_bytes * _KEEP), self.limit_bytes - size)
        for path, bytes_, _ in sorted(files, key=lambda item: item[2]):
            abandoned = path.suffix == ".partial" and _is_abandoned(path)
            if abandoned or (path.suffix == ".entry" and total > goal):
                path.unlink(missing_ok=True)
                total -= bytes_
        return total

    def _files(self) -> list[tuple[Path, int, int]]:
        """Path, bytes and last use (ns) of all that counts."""
        files = []
        for path in self.folder.iterdir():
            if path.suffix in (".entry", ".partial"):
                with contextlib.suppress(FileNotFoundError):
                    facts = path.stat()
                    files.append((path, facts.st_size, facts.st_mtime_ns))
        return files

    @contextmanager
    def _books(self) -> Iterator[BinaryIO]:
        with open_unbuffered(self.folder / "books") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield file


def _mapped(entry: Path) -> Array | None:
    """An entry mapped into memory, marked as used."""
    try:
        array: Array = np.load(entry, mmap_mode="r", allow_pickle=False)
    except FileNotFoundError:
        return None
    with contextlib.suppress(FileNotFoundError):
        os.utime(entry)
    return array


def _write(file: BinaryIO, data: memoryview) -> None:
    """All of it: a single write to an almost full file system ends early, and only the next one says why."""
    while data:
        data = data[file.write(data) :]


def _lock(file: BinaryIO) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _is_at(file: BinaryIO, path: Path) -> bool:
    """Whether the open file is the one of that name: it may have been renamed, and another be in its place."""
    try:
        return os.path.samestat(os.fstat(file.fileno()), path.stat())
    except FileNotFoundError:
        return False


def _is_abandoned(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return _lock(file)
    except FileNotFoundError:
        return False


def _recorded(books: BinaryIO) -> int:
    data = os.pread(books.fileno(), _BOOKS.size, 0)
    return int(_BOOKS.unpack(data)[0]) if data else 0


def _record(books: BinaryIO, total: int) -> None:
    os.pwrite(books.fileno(), _BOOKS.pack(total), 0)
