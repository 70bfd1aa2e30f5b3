"""
Mounts, home and working directory of the user, made before anything runs in the container.

Every path is walked by descriptor, so that no link or renamed directory diverts a step. Root creates in the container's
layers, because image files are root's; the user's rights apply in the user's mounts.
"""

import contextlib
import os
import posixpath
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from . import system
from .errors import RefusedError
from .mounts import ContainerMount
from .request import StepUser


@dataclass(frozen=True, kw_only=True)
class PreparedMount:
    """A mount with its opened source, as a detached tree."""

    mount: ContainerMount
    tree: int
    is_directory: bool


class ContainerRoot:
    def __init__(self, *, user: StepUser) -> None:
        self._user = user
        self._own = {device for path in ("/", "/tmp", "/run") if (device := _device(path))}  # noqa: S108

    def mount(self, prepared: Sequence[PreparedMount]) -> None:
        for one in prepared:
            target = one.mount.target
            try:
                with self._made(target, directory=one.is_directory) as fd:
                    system.attach(one.tree, at=fd)
            except OSError as error:
                raise RefusedError(f"--container-mounts: cannot mount at {target}: {error.strerror}") from error

    def own_directory(self, path: str) -> None:
        """Create or take over a directory for the user, as Enroot gives the user all files."""
        if path == "/":
            return
        with contextlib.suppress(OSError), self._made(path, directory=True) as fd:
            if os.fstat(fd).st_dev in self._own and not self._is_system(path):
                system.chown(fd, uid=self._user.uid, gid=self._user.gid)

    @staticmethod
    def _is_system(path: str) -> bool:
        return path.split("/")[1] in {"bin", "boot", "dev", "etc", "lib", "lib64", "proc", "sbin", "sys", "usr", "var"}

    @contextlib.contextmanager
    def _made(self, path: str, *, directory: bool) -> Iterator[int]:
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
