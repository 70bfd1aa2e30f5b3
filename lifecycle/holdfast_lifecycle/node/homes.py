"""
Home directories with keys, made by the first node.

All nodes try at the same time: homes and key folders are renamed into place when complete, and the first one wins.
"""

import os
import shutil
from pathlib import Path

from holdfast_lifecycle.model import Context, StepError, User
from holdfast_lifecycle.node.accounts import home_of, is_shared
from holdfast_lifecycle.node.key_pairs import give_key_pair, missing_key_pair

_CLOSED = 0o750
"""HOME_MODE of Ubuntu 22.04's login.defs."""


def missing_home(context: Context, user: User) -> str:
    home = context.path(home_of(context, user))
    if not home.is_dir() or home.is_symlink() or home.stat().st_uid != user.uid:
        return f"{home} is a link or not a folder"
    if home.stat().st_mode & 0o022:
        return f"{home} is writable by others"
    if not is_shared(context, home_of(context, user)):
        return ""
    return missing_key_pair(home / ".ssh")


def make_home(context: Context, user: User) -> None:
    """Make the home of a user; on a shared file system with a key pair for all nodes. Raises StepError."""
    home = context.path(home_of(context, user))
    try:
        if not home.is_symlink() and not home.exists():
            place_folder(context, home, user)
        _own(home, user)
        if is_shared(context, home_of(context, user)):
            give_key_pair(home, user, node=context.instance_id, work=context.path("/run"))
    except OSError as error:
        raise StepError(
            expected=f"user '{user.name}' has the home {home_of(context, user)}",
            seen=f"cannot create it: {error}",
            action="give the user another home under lifecycle.users, or free space for this one",
        ) from error


def place_folder(context: Context, home: Path, user: User) -> None:
    """Make a folder under a temporary name, which the step fsx ignores, and rename it when complete."""
    home.parent.mkdir(parents=True, exist_ok=True)
    fresh = home.with_name(f".{home.name}.{context.instance_id}")
    shutil.rmtree(fresh, ignore_errors=True)
    skeleton = context.path("/etc/skel")
    shutil.copytree(skeleton, fresh, symlinks=True) if skeleton.is_dir() else fresh.mkdir()
    for path in (fresh, *fresh.rglob("*")):
        os.chown(path, user.uid, user.uid, follow_symlinks=False)
    fresh.chmod(_CLOSED)
    try:
        fresh.rename(home)
    except OSError:
        shutil.rmtree(fresh, ignore_errors=True)
        if not home.is_dir():
            raise


def _own(home: Path, user: User) -> None:
    """Give the folder to the user by a descriptor, so that a link in its place cannot redirect root."""
    try:
        folder = os.open(home, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        raise _not_its_own(home, user, "it is a link or a file") from None
    try:
        state = os.fstat(folder)
        if state.st_uid not in (0, user.uid):
            raise _not_its_own(home, user, f"it belongs to uid {state.st_uid}")
        if state.st_uid != user.uid and os.listdir(folder):  # noqa: PTH208  a descriptor, no path
            raise _not_its_own(home, user, "it belongs to root and is not empty")
        os.fchown(folder, user.uid, user.uid)
        os.fchmod(folder, state.st_mode & 0o755)
    finally:
        os.close(folder)


def _not_its_own(home: Path, user: User, seen: str) -> StepError:
    return StepError(
        expected=f"{home} is a folder that belongs to '{user.name}'",
        seen=seen,
        action="find its owner and move it away, or give the user another home under lifecycle.users",
    )
