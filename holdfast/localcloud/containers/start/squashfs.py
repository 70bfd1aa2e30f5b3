"""
Image files of ``enroot import`` and ``mksquashfs``, unpacked once per node and user.

Opened and unpacked with the user's rights, so a bad file harms its owner only. Enroot keeps the image's variables in
``/etc/environment`` and its working directory in ``/etc/rc``.
"""

import fcntl
import hashlib
import os
import re
import shutil
import stat
import struct
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from . import system
from .errors import RefusedError
from .request import StepRequest

UNPACKED = "/opt/holdfast/unpacked"
"""Of the node: a folder on the machine's disk, for it alone."""
PROGRAM = "/usr/bin/unsquashfs"
TIMEOUT_S = 540
"""srun waits ten minutes for the start of a step (Slurm, step_launch.c)."""
_MAGIC = b"hsqs"
_SUPERBLOCK = struct.Struct("<4s36xQ")
"""The magic number and the bytes of the whole file (kernel, Documentation/filesystems/squashfs.rst, squashfs_fs.h)."""
_MAX_FILE_BYTES = 1 << 20
_MAY_FAIL = re.compile(r"superuser|xattr|device|write_file: .*socket", re.IGNORECASE)
"""Files that only root could unpack."""


def unpack(given: str, *, request: StepRequest) -> Path:
    path = os.path.join(request.folder, given)  # noqa: PTH118  "." and ".." stay the kernel's
    try:
        with system.acting_as(request.user):
            fd = system.open_path(path, flags=os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except FileNotFoundError:
        raise RefusedError(f"failed to import image file: {given}: no such file on this node") from None
    except OSError as error:
        raise RefusedError(f"failed to import image file: {given}: {error.strerror}") from None
    try:
        _check(fd, given=given)
        return _unpacked(fd, given=given, request=request)
    finally:
        os.close(fd)


def _check(fd: int, *, given: str) -> None:
    info = os.fstat(fd)
    if not stat.S_ISREG(info.st_mode):
        raise RefusedError(f"failed to import image file: {given}: it is not a file; name a squashfs file")
    head = os.pread(fd, _SUPERBLOCK.size, 0)
    magic, size = _SUPERBLOCK.unpack(head) if len(head) == _SUPERBLOCK.size else (b"", 0)
    if magic != _MAGIC:
        raise RefusedError(
            f"failed to import image file: {given}: it is not a squashfs file; make one with "
            "enroot import or mksquashfs"
        )
    if info.st_size < size:
        raise RefusedError(
            f"failed to import image file: {given}: it has {info.st_size} of its {size} bytes; copy it again"
        )


def _unpacked(fd: int, *, given: str, request: StepRequest) -> Path:
    info = os.fstat(fd)
    what = (request.user.uid, info.st_dev, info.st_ino, info.st_size, info.st_mtime_ns)
    place = Path(UNPACKED, hashlib.sha256(repr(what).encode()).hexdigest()[:24])
    place.parent.mkdir(parents=True, exist_ok=True, mode=0o755)
    with Path(f"{place}.lock").open("w") as lock:  # of steps that begin at the same time, one unpacks
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not place.is_dir():
            fresh = Path(f"{place}.new")
            shutil.rmtree(fresh, ignore_errors=True)
            root = fresh / "rootfs"
            root.mkdir(parents=True, mode=0o755)
            os.chown(root, request.user.uid, request.user.gid)
            try:
                _run(fd, root=root, given=given, request=request)
                fresh.rename(place)
            finally:
                shutil.rmtree(fresh, ignore_errors=True)
    return place / "rootfs"


def _run(fd: int, *, root: Path, given: str, request: StepRequest) -> None:
    if not os.access(PROGRAM, os.X_OK):
        raise RefusedError(
            "there is no unsquashfs on this node; install Debian's package squashfs-tools on the machine"
        )
    try:
        done = subprocess.run(
            [PROGRAM, "-quiet", "-no-progress", "-no-xattrs", "-force", "-dest", str(root), f"/proc/self/fd/{fd}"],
            pass_fds=(fd,),
            user=request.user.uid,
            group=request.user.gid,
            extra_groups=request.user.groups,
            umask=0o022,
            preexec_fn=system.die_with_parent,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=TIMEOUT_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise RefusedError(f"failed to import image file: {given}: not unpacked within {TIMEOUT_S} s") from None
    lines = [line.strip() for line in (done.stderr + done.stdout).splitlines() if line.strip()]
    wrong = [line for line in lines if not _MAY_FAIL.search(line)]
    if done.returncode == 0 or (done.returncode == 2 and not wrong):  # 2: something was left out
        return
    reported = (wrong or lines or [f"exit status {done.returncode}"])[0]
    raise RefusedError(
        f"failed to import image file: {given}: unsquashfs: {reported}; make or copy the file again, and check "
        "the free space on the machine's disk"
    )


def config(root: Path) -> Mapping[str, Any]:
    """Return the image's configuration, as in the OCI image specification."""
    found: dict[str, Any] = {"Env": [line for line in file_of_etc(root, "environment").splitlines() if "=" in line[1:]]}
    folder = re.search(r'^\s*cd "([^"]+)"', file_of_etc(root, "rc"), re.MULTILINE)
    if folder:
        found["WorkingDir"] = folder[1]
    return {"config": found}


def file_of_etc(root: Path, name: str) -> str:
    """Return a file below /etc of the image; empty for a link, which might lead out of it."""
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        etc = os.open(root / "etc", os.O_PATH | os.O_NOFOLLOW | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError:
        return ""
    try:
        with os.fdopen(os.open(name, flags, dir_fd=etc), errors="replace") as file:
            return file.read(_MAX_FILE_BYTES)
    except OSError:
        return ""
    finally:
        os.close(etc)
