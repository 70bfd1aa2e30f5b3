"""
What is done in the container's mounts before anybody runs there: the user's mounts, home and working directory.

Every path is walked by descriptor, one component after the other, so that neither a link in an image nor a directory
that somebody renames meanwhile leads a step of this astray. What lies in the container's own layers is made by root,
because image files are root's; what lies in a mount of the user's is made with the user's rights.
"""

import contextlib
import os
import posixpath
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from . import system
from .errors import RefusedError
from .mounts import Mount
from .request import User


@dataclass(frozen=True, kw_only=True)
class Prepared:
    """A mount whose source is open, as a detached tree."""

    mount: Mount
    tree: int
    is_directory: bool


class Inside:
    """The file system of a container, seen from in it."""

    def __init__(self, *, user: User) -> None:
        self._user = user
        self._own = {device for path in ("/", "/tmp", "/run") if (device := _device(path))}  # noqa: S108

    def mount(self, prepared: Sequence[Prepared]) -> None:
        """Make the user's mounts, in their order."""
        for one in prepared:
            target = one.mount.target
            try:
                with self._made(target, directory=one.is_directory) as fd:
                    system.attach(one.tree, at=fd)
            except OSError as error:
                raise RefusedError(f"--container-mounts: cannot mount at {target}: {error.strerror}") from error

    def own_directory(self, path: str) -> None:
        """A directory of the user's; where the image has one, it is given to the user, as Enroot gives all."""
        if path == "/":
            return
        with contextlib.suppress(OSError), self._made(path, directory=True) as fd:
            if os.fstat(fd).st_dev in self._own and not self._is_system(path):
                system.chown(fd, uid=self._user.uid, gid=self._user.gid)

    @staticmethod
    def _is_system(path: str) -> bool:
        """Whether programs are found there: not every image has a working directory of its own."""
        return path.split("/")[1] in {"bin", "boot", "dev", "etc", "lib", "lib64", "proc", "sbin", "sys", "usr", "var"}

    @contextlib.contextmanager
    def _made(self, path: str, *, directory: bool) -> Iterator[int]:
        """A descriptor of ``path``, made with its parents where it is missing."""
        here = system.open_path("/")
        try:
            parts = posixpath.normpath(path).strip("/").split("/")
            for number, part in enumerate(parts):
                last = number == len(parts) - 1
                there = self._step(here, part, directory=directory or not last)
                os.close(here)
                here = there
            if directory and not stat.S_ISDIR(os.fstat(here).st_mode):
                raise NotADirectoryError(20, "Not a directory")
            yield here
        finally:
            os.close(here)

    def _step(self, parent: int, name: str, *, directory: bool) -> int:
        try:
            return system.open_path(name, at=parent)
        except FileNotFoundError:
            pass
        own = os.fstat(parent).st_dev in self._own
        with contextlib.nullcontext() if own else system.acting_as(self._user):
            if directory:
                os.mkdir(name, 0o755, dir_fd=parent)
            else:
                flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW
                os.close(os.open(name, flags, 0o644, dir_fd=parent))
        return system.open_path(name, at=parent)


def _device(path: str) -> int:
    try:
        fd = system.open_path(path)
    except OSError:
        return 0
    try:
        return os.fstat(fd).st_dev
    finally:
        os.close(fd)
