"""Ownership of a home: marked at creation, checked before use, emptied of our files."""

import contextlib
import errno
import json
import os
import stat
from pathlib import Path

from holdfast.localcloud.home.errors import LocalCloudError
from holdfast.localcloud.home.private import fault, write_private
from holdfast.localcloud.home.trees import remove_tree
from holdfast.localcloud.home.version import installed_version

MARKER = ".holdfast-home"
LOCK = ".holdfast-command"
"""File locked by the command that holds the home. Removed after the marker, so that a half removed home is not used."""
OURS = (
    "auto-resume",
    "aws",
    "cdk.out",
    "containers",
    "docker-stand-in",
    "fsx",
    "functions",
    "hyperpod",
    "images",
    "kubeconfig",
    "kubeconfigs",
    "kubernetes",
    "log",
    "monitor",
    "nodes",
    "packages",
    "run",
    ".nodes.lock",
    "session.json",
    "session.new",
    "sessions",
    "tmp",
)
"""Our files in a home; nothing else is removed."""


class HomeError(LocalCloudError): ...


def make_folder(home: Path) -> None:
    """Create a home; accept an existing one or an empty folder. Raise HomeError for other content or owners."""
    try:
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
    except FileExistsError:
        raise HomeError(f"{home} is not a folder; name another one with HOLDFAST_HOME=<folder>") from None
    except OSError as error:
        raise unwritable(home, error) from None
    if _has_marker(home):
        recognise(home)
        return
    _must_be_private(home)
    if not is_fresh(home):
        raise HomeError(
            f"{home} is not empty and has no {MARKER}, so it is not the home of a local cloud; "
            "name an empty or a new folder with HOLDFAST_HOME=<folder>"
        )


def is_fresh(home: Path) -> bool:
    """Return True if a folder has only what a killed command left before it became a home."""
    return all(entry.name in (LOCK, f"{MARKER}.part") for entry in home.iterdir())


def claim(home: Path) -> None:
    """Make a folder a home, or check that it is one. Raise HomeError, as `make_folder`."""
    make_folder(home)
    if _has_marker(home):
        return
    home.chmod(0o700)
    write_private(home / MARKER, (json.dumps({"holdfast": installed_version()}) + "\n").encode())


def unwritable(home: Path, error: OSError) -> Exception:
    if error.errno == errno.EROFS:
        return HomeError(
            f"{home} is on a file system that is mounted read-only; mount it for writing, "
            "or name another folder with HOLDFAST_HOME=<folder>"
        )
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return HomeError(f"{error.filename or home} cannot be written, the disk is full; free some space there")
    return error


def recognise(home: Path) -> None:
    """Check that a folder is a home that only this user can change. Raise HomeError."""
    _must_be_private(home)
    marker = home / MARKER
    try:
        info = marker.lstat()
    except FileNotFoundError:
        raise HomeError(
            f"{home} has no {MARKER}, so it is not a home that holdfast up made, and it is left unchanged; name the "
            f"home with HOLDFAST_HOME=<folder>, or, if this is a home, mark it: touch {marker}"
        ) from None
    why = fault(info, user=os.geteuid()) if stat.S_ISREG(info.st_mode) else "is no plain file"
    if why:
        raise HomeError(f"{marker} {why}; nothing in {home} is used or touched")


def release(home: Path) -> list[str]:
    """Remove our files; return names of what remains. Raise HomeError if it is no home of this user."""
    recognise(home)
    for name in OURS:
        remove_tree(home / name)
    for part in home.glob("*.part"):
        if part.name.removesuffix(".part") in (MARKER, *OURS):
            part.unlink()
    left = sorted(entry.name for entry in home.iterdir() if entry.name not in (MARKER, LOCK))
    (home / MARKER).unlink(missing_ok=True)
    if not left:
        with contextlib.suppress(OSError):  # a mount point stays, and what a command has locked
            home.rmdir()
    return left


def _has_marker(home: Path) -> bool:
    return (home / MARKER).is_symlink() or (home / MARKER).exists()


def _must_be_private(home: Path) -> None:
    """Check the folder behind a link, too: who can write into it matters."""
    info = home.stat()
    if not stat.S_ISDIR(info.st_mode):
        raise HomeError(f"{home} is not a folder; name another one with HOLDFAST_HOME=<folder>")
    why = fault(info, user=os.geteuid())
    if why:
        raise HomeError(
            f"{home} {why}: a home must be writable by its owner only; "
            f"name another folder with HOLDFAST_HOME=<folder>, or: chown $(id -u) {home} && chmod 700 {home}"
        )
