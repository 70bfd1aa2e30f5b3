"""System calls that Python 3.11 lacks, and temporary user rights."""

import contextlib
import ctypes
import os
import sys
from collections.abc import Iterator, Mapping

from .request import StepUser

MS_RDONLY, MS_NOSUID, MS_NODEV, MS_NOEXEC = 1, 2, 4, 8
MS_REMOUNT, MS_BIND, MS_REC, MS_PRIVATE = 32, 4096, 16384, 1 << 18
CLONE_NEWNS, CLONE_NEWPID = 0x00020000, 0x20000000
ATTRIBUTES = {"ro": 1, "nosuid": 2, "nodev": 4, "noexec": 8}
"""MOUNT_ATTR_*: what ``mount_setattr`` adds, and never takes away."""

O_PATH = os.O_PATH | os.O_CLOEXEC

# These have one number on every architecture.
_OPEN_TREE, _MOVE_MOUNT, _FSOPEN, _FSCONFIG, _FSMOUNT, _OPENAT2, _MOUNT_SETATTR = 428, 429, 430, 431, 432, 437, 442
_FSCONFIG_SET_STRING, _FSCONFIG_CMD_CREATE = 1, 6
_AT_EMPTY_PATH, _AT_RECURSIVE, _OPEN_TREE_CLONE = 0x1000, 0x8000, 1
_RESOLVE_NO_MAGICLINKS = 2
_FROM_FD_TO_FD = 0x04 | 0x40
_PR_SET_PDEATHSIG, _SIGKILL = 1, 9

_libc = ctypes.CDLL(None, use_errno=True)


class _OpenHow(ctypes.Structure):
    _fields_ = (("flags", ctypes.c_uint64), ("mode", ctypes.c_uint64), ("resolve", ctypes.c_uint64))


class _MountAttributes(ctypes.Structure):
    _fields_ = (
        ("set", ctypes.c_uint64),
        ("clear", ctypes.c_uint64),
        ("propagation", ctypes.c_uint64),
        ("userns_fd", ctypes.c_uint64),
    )


def _checked(result: int, what: str) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), what)
    return result


def _call(number: int, what: str, *arguments: object) -> int:
    return _checked(_libc.syscall(ctypes.c_long(number), *arguments), what)


def open_path(path: str, *, at: int = -100, flags: int = O_PATH) -> int:
    """Open ``path`` without following magic links of /proc."""
    how = _OpenHow(flags=flags, resolve=_RESOLVE_NO_MAGICLINKS)
    raw = os.fsencode(path)
    return _call(_OPENAT2, path, ctypes.c_int(at), raw, ctypes.byref(how), ctypes.c_size_t(ctypes.sizeof(how)))


def clone_tree(fd: int, *, attributes: int) -> int:
    """Return a detached copy of the mounts at ``fd`` and below, with added attributes."""
    flags = _OPEN_TREE_CLONE | _AT_RECURSIVE | _AT_EMPTY_PATH | os.O_CLOEXEC
    tree = _call(_OPEN_TREE, "open_tree", ctypes.c_int(fd), b"", ctypes.c_uint(flags))
    change = _MountAttributes(set=attributes, propagation=MS_PRIVATE)
    where = ctypes.c_uint(_AT_EMPTY_PATH | _AT_RECURSIVE)
    size = ctypes.c_size_t(ctypes.sizeof(change))
    _call(_MOUNT_SETATTR, "mount_setattr", ctypes.c_int(tree), b"", where, ctypes.byref(change), size)
    return tree


def new_tmpfs(*, attributes: int, options: Mapping[str, str]) -> int:
    context = _call(_FSOPEN, "fsopen", b"tmpfs", ctypes.c_uint(1))
    try:
        for name, value in options.items():
            words = (name.encode(), value.encode(), ctypes.c_int(0))
            _call(_FSCONFIG, name, ctypes.c_int(context), ctypes.c_uint(_FSCONFIG_SET_STRING), *words)
        command = ctypes.c_uint(_FSCONFIG_CMD_CREATE)
        _call(_FSCONFIG, "tmpfs", ctypes.c_int(context), command, None, None, ctypes.c_int(0))
        return _call(_FSMOUNT, "fsmount", ctypes.c_int(context), ctypes.c_uint(1), ctypes.c_uint(attributes))
    finally:
        os.close(context)


def chown(fd: int, *, uid: int, gid: int) -> None:
    """Change the owner of a descriptor's file, also with O_PATH."""
    where = (ctypes.c_int(fd), b"", ctypes.c_uint(uid), ctypes.c_uint(gid), ctypes.c_int(_AT_EMPTY_PATH))
    _checked(_libc.fchownat(*where), "chown")


def attach(tree: int, *, at: int) -> None:
    """Mount a detached tree on ``at``."""
    _call(_MOVE_MOUNT, "move_mount", ctypes.c_int(tree), b"", ctypes.c_int(at), b"", ctypes.c_uint(_FROM_FD_TO_FD))


def mount(*, source: str | None, target: str, kind: str | None = None, flags: int = 0, data: str | None = None) -> None:
    words = [None if text is None else os.fsencode(text) for text in (source, target, kind, data)]
    _checked(_libc.mount(words[0], words[1], words[2], ctypes.c_ulong(flags), words[3]), target)


def unshare(flags: int) -> None:
    _checked(_libc.unshare(ctypes.c_int(flags)), "unshare")


def join_mounts(fd: int) -> None:
    _checked(_libc.setns(ctypes.c_int(fd), ctypes.c_int(CLONE_NEWNS)), "setns")


def die_with_parent() -> None:
    _checked(_libc.prctl(ctypes.c_int(_PR_SET_PDEATHSIG), ctypes.c_ulong(_SIGKILL)), "prctl")


@contextlib.contextmanager
def acting_as(user: StepUser) -> Iterator[None]:
    """Open and create files with the user's rights only."""
    groups = os.getgroups()
    os.setgroups(user.groups)
    os.setegid(user.gid)
    os.seteuid(user.uid)
    try:
        yield
    finally:
        os.seteuid(0)
        os.setegid(0)
        os.setgroups(groups)
        if os.geteuid() != 0:
            sys.exit("could not become root again")
        die_with_parent()  # the kernel forgets it when the effective user changes
