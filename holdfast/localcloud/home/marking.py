"""Whose a home is: marked when it is made, recognised before anything is read, and emptied of what was made there."""

import contextlib
import json
import os
import stat
from pathlib import Path

from holdfast.localcloud.home.errors import LocalCloudError
from holdfast.localcloud.home.private import fault, write_private
from holdfast.localcloud.home.trees import remove_tree

MARKER = ".holdfast-home"
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
    "run",
    ".nodes.lock",
    "session.json",
    "session.new",
    "sessions",
    "tmp",
)
"""What the local cloud makes in a home; nothing else in it is removed."""


class HomeError(LocalCloudError):
    """A folder is not, or must not be, the home of a local cloud."""


def claim(home: Path) -> None:
    """
    Make a folder the home of a local cloud, or recognise that it is one.

    Raises:
        HomeError: it holds something and has no marker, or it is not this user's alone.
    """
    try:
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
    except FileExistsError:
        raise HomeError(f"{home} is not a folder; name another one with HOLDFAST_HOME=<folder>") from None
    if (home / MARKER).is_symlink() or (home / MARKER).exists():
        recognise(home)
        return
    _must_be_private(home)
    if any(home.iterdir()):
        raise HomeError(
            f"{home} is not empty and has no {MARKER}, so it is not the home of a local cloud; "
            "name an empty or a new folder with HOLDFAST_HOME=<folder>"
        )
    from importlib.metadata import version  # only for a new home: it takes 20 ms to load

    home.chmod(0o700)
    write_private(home / MARKER, (json.dumps({"holdfast": version("holdfast-hyperpod")}) + "\n").encode())


def recognise(home: Path) -> None:
    """
    Return when a folder is a home that only this user can change.

    Raises:
        HomeError: it is not.
    """
    _must_be_private(home)
    marker = home / MARKER
    try:
        info = marker.lstat()
    except FileNotFoundError:
        raise HomeError(
            f"{home} has no {MARKER}, so holdfast up did not make it and nothing in it is touched; name the home with "
            f"HOLDFAST_HOME=<folder>, or, if an earlier version made this one, mark it: touch {marker}"
        ) from None
    why = fault(info, user=os.geteuid()) if stat.S_ISREG(info.st_mode) else "is no plain file"
    if why:
        raise HomeError(f"{marker} {why}; nothing in {home} is used or touched")


def release(home: Path) -> list[str]:
    """
    Remove what a local cloud made in its home, and the home itself where nothing else is in it.

    Returns:
        Names of what is left, because somebody else put it there.

    Raises:
        HomeError: it is no home of this user's.
    """
    recognise(home)
    for name in OURS:
        remove_tree(home / name)
    for part in home.glob("*.part"):
        if part.name.removesuffix(".part") in (MARKER, *OURS):
            part.unlink()
    left = sorted(entry.name for entry in home.iterdir() if entry.name != MARKER)
    (home / MARKER).unlink(missing_ok=True)
    if not left:
        with contextlib.suppress(OSError):  # a mount point stays
            home.rmdir()
    return left


def _must_be_private(home: Path) -> None:
    """A link to a folder counts as the folder: what matters is who can put something into it."""
    info = home.stat()
    if not stat.S_ISDIR(info.st_mode):
        raise HomeError(f"{home} is not a folder; name another one with HOLDFAST_HOME=<folder>")
    why = fault(info, user=os.geteuid())
    if why:
        raise HomeError(
            f"{home} {why}: what a home keeps is run by its owner, so nobody else may change it; "
            f"name another folder with HOLDFAST_HOME=<folder>, or: chown $(id -u) {home} && chmod 700 {home}"
        )
