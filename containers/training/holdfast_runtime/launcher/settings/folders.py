"""The folder of a user for the sockets of launchers: nobody else can put anything there, or reach what is there."""

import stat
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path


class FolderError(OSError):
    """The folder is not the user's alone."""


def socket_folders(environment: Mapping[str, str], *, uid: int) -> tuple[Path, ...]:
    """Return folders for sockets of a user's launchers, the preferred one first."""
    named = environment.get("XDG_RUNTIME_DIR")
    of_session = [Path(named) / "holdfast"] if named else []
    return tuple(dict.fromkeys([*of_session, Path(f"/tmp/holdfast-{uid}")]))  # noqa: S108 - checked to be the user's


def check_folder(path: Path, *, uid: int) -> None:
    found = path.lstat()
    mode = stat.S_IMODE(found.st_mode)
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != uid or mode & 0o077:
        kind = "folder" if stat.S_ISDIR(found.st_mode) else "no folder"
        raise FolderError(
            f"got {path}: {kind} of uid {found.st_uid} with mode {mode:04o}; allowed: a folder of uid {uid} with mode "
            "0700; remove it, or name a socket elsewhere with --socket"
        )


def make_folder(path: Path, *, uid: int) -> None:
    """Make a folder that is the user's alone, or take the one there is. Raises OSError, FolderError."""
    with suppress(FileExistsError):
        path.mkdir(mode=0o700)
    check_folder(path, uid=uid)


__all__ = ["FolderError", "check_folder", "make_folder", "socket_folders"]
