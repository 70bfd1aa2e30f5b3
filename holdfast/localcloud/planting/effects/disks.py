"""
Node's disk, read-only or full.

Its root is an overlay on a shared tmpfs, and daemons hold logs open: no limit or remount is possible. So written
folders are mounted over themselves, read-only or with a full layer. New opens get EROFS and ENOSPC; open files are not
affected.
"""

import contextlib
import os
from collections.abc import Iterator, Sequence

from holdfast.localcloud.nodes import Node
from holdfast.localcloud.nodes.kernel import boot
from holdfast.localcloud.planting.effects.inside import in_mounts_of
from holdfast.localcloud.planting.faults import FaultError

_READ_ONLY = ("/etc", "/home", "/opt", "/root", "/srv", "/usr", "/var")
_FULL = ("/home", "/opt/dlami/nvme", "/opt/sagemaker", "/root", "/var/log", "/var/tmp")  # noqa: S108
_LAYERS = "/run/holdfast/full"
_SIZE = 1 << 16
_STAGE = "/run/holdfast/stage"


@contextlib.contextmanager
def read_only_disk(node: Node) -> Iterator[str]:
    """Make the root disk read-only; yield the folders."""
    done: list[str] = []

    def cover() -> None:
        os.makedirs(_STAGE, exist_ok=True)  # noqa: PTH103
        boot.mount(source="stage", target=_STAGE, kind="tmpfs", flags=boot.MS_NODEV, data="size=4k")
        try:
            boot.mount(source=None, target=_STAGE, flags=boot.MS_PRIVATE)
            os.mkdir(f"{_STAGE}/next")  # noqa: PTH102
            for path in _READ_ONLY:
                if os.path.isdir(path):  # noqa: PTH112
                    _cover(path, aside=f"{_STAGE}/next")
                    done.append(path)
        finally:
            boot.umount(_STAGE, flags=boot.MNT_DETACH)

    with _undone(node, done):
        in_mounts_of(node, cover)
        yield ", ".join(done)


def _cover(path: str, *, aside: str) -> None:
    """
    Mount a folder over itself, read-only.

    Prepared aside: mounts of services receive the new mount, not later changes. Private meanwhile, so that its removal
    does not remove the folder's own mounts.
    """
    boot.mount(source=path, target=aside, flags=boot.MS_BIND | boot.MS_REC)
    try:
        boot.mount(source=None, target=aside, flags=boot.MS_PRIVATE | boot.MS_REC)
        had = os.statvfs(aside).f_flag & (boot.MS_NOSUID | boot.MS_NODEV | boot.MS_NOEXEC)
        boot.mount(source=None, target=aside, flags=boot.MS_BIND | boot.MS_REMOUNT | boot.MS_RDONLY | had)
        boot.mount(source=aside, target=path, flags=boot.MS_BIND | boot.MS_REC)
    finally:
        boot.umount(aside, flags=boot.MNT_DETACH)


@contextlib.contextmanager
def full_disk(node: Node) -> Iterator[str]:
    done: list[str] = []

    def cover() -> None:
        os.makedirs(_LAYERS, exist_ok=True)  # noqa: PTH103
        boot.mount(source="full", target=_LAYERS, kind="tmpfs", flags=boot.MS_NODEV, data=f"size={_SIZE}")
        done.append(_LAYERS)
        places = [path for path in _FULL if os.path.isdir(path) and not os.path.ismount(path)]  # noqa: PTH112
        for number in range(len(places)):
            for kind in ("upper", "work"):
                os.makedirs(f"{_LAYERS}/{number}/{kind}")  # noqa: PTH103
        _fill(f"{_LAYERS}/filling")
        for number, path in enumerate(places):
            info = os.stat(path)  # noqa: PTH116
            os.chown(f"{_LAYERS}/{number}/upper", info.st_uid, info.st_gid)
            os.chmod(f"{_LAYERS}/{number}/upper", info.st_mode & 0o7777)  # noqa: PTH101
            options = boot.overlay_options(
                lowers=[path], upper=f"{_LAYERS}/{number}/upper", work=f"{_LAYERS}/{number}/work"
            )
            boot.mount(source="overlay", target=path, kind="overlay", flags=boot.MS_NODEV, data=options)
            done.append(path)
        if len(done) < 2:
            raise FaultError(f"node {node.spec.instance_id} has none of the folders {', '.join(_FULL)}")

    with _undone(node, done):
        in_mounts_of(node, cover)
        yield ", ".join(done[1:])


def _fill(path: str) -> None:
    with open(path, "wb", buffering=0) as file, contextlib.suppress(OSError):  # noqa: PTH123
        while file.write(bytes(4096)):
            pass


@contextlib.contextmanager
def _undone(node: Node, done: Sequence[str]) -> Iterator[None]:
    """Remove the mounts, last first; processes that use one keep it."""

    def uncover() -> None:
        for path in reversed(done):
            with contextlib.suppress(OSError):
                boot.umount(path, flags=boot.MNT_DETACH)

    try:
        yield
    finally:
        with contextlib.suppress(OSError):  # the node has ended, or is about to
            in_mounts_of(node, uncover)
