"""Token of a run: from HOLDFAST_TOKEN, or made by the first launcher in a file that only this user can read."""

import hashlib
import os
import secrets
import stat
import time
from collections.abc import Mapping
from pathlib import Path

VARIABLE = "HOLDFAST_TOKEN"
FOLDER = ".holdfast/run-tokens"
KEPT_S = 90 * 86400.0
"""Tokens of runs that no launcher has asked for since then are removed."""
LONGEST_BYTES = 1024


class TokenError(ValueError):
    """The token cannot be had, and what to do."""


def run_token(*, environment: Mapping[str, str], nodes: int, run_id: str, home: Path | None = None) -> str:
    """
    The token that all launchers of a run have.

    Args:
        home: One that all nodes of the job share. Default: the user's.

    Raises:
        TokenError: the file is somebody else's, or others may read it.
    """
    given = environment.get(VARIABLE)
    if given:
        return given
    if nodes == 1:
        return secrets.token_hex(32)
    try:
        return _handed_out((home or Path.home()) / FOLDER, run_id=run_id)
    except (OSError, RuntimeError) as error:
        raise TokenError(
            f"{VARIABLE} is not set, and no token can be handed out in the home directory ({error}); set {VARIABLE} to "
            "the same secret on all nodes, such as with: export HOLDFAST_TOKEN=$(openssl rand -hex 32)"
        ) from None


def _handed_out(folder: Path, *, run_id: str) -> str:
    """Made by whichever launcher comes first; link(2) lets one win, with the whole content."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    _check(folder, folder.lstat(), kind=stat.S_IFDIR)
    path = folder / hashlib.sha256(run_id.encode()).hexdigest()[:32]
    if not path.exists():
        _remove_old(folder)
        fresh = folder / f"new-{secrets.token_hex(8)}"
        descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
        try:
            with os.fdopen(descriptor, "w") as file:
                file.write(secrets.token_hex(32))
            os.link(fresh, path)
        except FileExistsError:
            pass  # another launcher was faster, and its token holds
        finally:
            fresh.unlink()
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
    with os.fdopen(descriptor) as file:
        _check(path, os.fstat(descriptor), kind=stat.S_IFREG)
        os.utime(path)
        return file.read(LONGEST_BYTES)


def _check(path: Path, info: os.stat_result, *, kind: int) -> None:
    if stat.S_IFMT(info.st_mode) != kind or info.st_uid != os.geteuid() or info.st_mode & 0o077:
        raise PermissionError(f"{path} must be this user's, and for no one else to read or write")


def _remove_old(folder: Path) -> None:
    for path in folder.iterdir():
        if path.lstat().st_mtime < time.time() - KEPT_S:
            path.unlink(missing_ok=True)
