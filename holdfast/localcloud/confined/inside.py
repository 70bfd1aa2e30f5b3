"""One path in a directory that others write to."""

import contextlib
import errno
import os
import secrets
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Literal

from .openat2 import Links, openat2

_FLAGS = {"rb": os.O_RDONLY, "ab": os.O_WRONLY | os.O_CREAT | os.O_APPEND}


@dataclass(frozen=True, kw_only=True)
class Inside:
    """A file or directory, opened by each method. OSError: ELOOP or EXDEV where the path would lead out."""

    root: Path
    """Trusted: links in it are followed."""
    path: str
    """Relative to the root, with or without a slash before it."""
    links: Links = Links.AS_INSIDE

    def open(self, mode: Literal["rb", "ab"]) -> IO[bytes]:
        descriptor = self._descriptor(_FLAGS[mode] | os.O_NONBLOCK | os.O_NOCTTY, mode=0o644)
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            os.close(descriptor)
            raise OSError(errno.EINVAL, "not a regular file", self.path)
        return os.fdopen(descriptor, mode)

    def read_bytes(self) -> bytes:
        with self.open("rb") as file:
            return file.read()

    def append(self, content: bytes) -> None:
        with self.parent(make=0o755):
            pass
        with self.open("ab") as file:
            file.write(content)

    def stat(self) -> os.stat_result:
        descriptor = self._descriptor(os.O_PATH)
        try:
            return os.fstat(descriptor)
        finally:
            os.close(descriptor)

    def exists(self) -> bool:
        try:
            self.stat()
        except OSError:
            return False
        return True

    def is_directory(self) -> bool:
        try:
            return stat.S_ISDIR(self.stat().st_mode)
        except OSError:
            return False

    def unlink(self) -> None:
        with contextlib.suppress(FileNotFoundError), self.parent() as (directory, name):
            os.unlink(name, dir_fd=directory)

    @contextlib.contextmanager
    def fresh(self, *, make: int, prefix: str = ".") -> Iterator[IO[bytes]]:
        """Yield a new file that takes the name at the end: readers see the old content or all of the new."""
        with self.parent(make=make) as (directory, name):
            temporary = f"{prefix}{secrets.token_hex(8)}"
            flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
            descriptor = os.open(temporary, flags, 0o600, dir_fd=directory)
            try:
                with os.fdopen(descriptor, "wb") as file:
                    yield file
                os.replace(temporary, name, src_dir_fd=directory, dst_dir_fd=directory)
            except BaseException:
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(temporary, dir_fd=directory)
                raise

    @contextlib.contextmanager
    def parent(self, *, make: int | None = None) -> Iterator[tuple[int, str]]:
        """Return the parent directory's descriptor, and the last part. ``make``: mode of missing ones; None: error."""
        folder, _, name = self.path.strip("/").rpartition("/")
        if name in ("", ".", ".."):
            raise OSError(errno.EINVAL, "not the name of a file", self.path)
        with Inside(root=self.root, path=folder, links=self.links).directory(make=make) as descriptor:
            yield descriptor, name

    @contextlib.contextmanager
    def directory(self, *, make: int | None = None) -> Iterator[int]:
        """Return a descriptor of the directory; other programs use ``/proc/self/fd/<number>``."""
        try:
            descriptor = self._descriptor(os.O_RDONLY | os.O_DIRECTORY)
        except FileNotFoundError:
            if make is None:
                raise
            descriptor = self._made(make)
        try:
            yield descriptor
        finally:
            os.close(descriptor)

    def _made(self, mode: int) -> int:
        with self.parent(make=mode) as (directory, name), contextlib.suppress(FileExistsError):
            os.mkdir(name, 0o700, dir_fd=directory)
            made = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=directory)
            try:
                os.fchmod(made, mode)
            finally:
                os.close(made)
        return self._descriptor(os.O_RDONLY | os.O_DIRECTORY)

    def _descriptor(self, flags: int, *, mode: int = 0) -> int:
        root = os.open(self.root, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            created = mode if flags & os.O_CREAT else 0
            return openat2(root, self.path.lstrip("/"), flags=flags, mode=created, links=self.links)
        finally:
            os.close(root)
