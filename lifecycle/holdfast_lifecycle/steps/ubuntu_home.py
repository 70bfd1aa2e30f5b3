"""
The account ``ubuntu`` has its home and a key pair on the shared file system.

As AMI-based configuration leaves it; with the key it goes from node to node. All nodes do this at the same time: the
first key in place is everybody's.
"""

import os
from pathlib import Path

from holdfast_lifecycle.model import Context, StepError
from holdfast_lifecycle.node import KEY, Account, account, missing_key_pair, run_program, wait_until, write_whole

_NAME = "ubuntu"
_BUSY_S = 60.0
"""usermod refuses while the account has processes."""


def _home(context: Context) -> str:
    return f"{context.fsx_mount_path}/{_NAME}"


def _missing(context: Context, person: Account) -> str:
    """What is not yet so; empty when all is."""
    home = context.path(_home(context))
    if person.home != _home(context):
        return f"its home is {person.home}"
    if not home.is_dir() or home.stat().st_uid != person.uid:
        return f"{home} is not its own"
    return missing_key_pair(home / ".ssh")


def check(context: Context) -> bool:
    person = account(context, _NAME)
    return not context.fsx_mount_path or person is None or not _missing(context, person)


def apply(context: Context) -> None:
    person = account(context, _NAME)
    assert person is not None
    home = context.path(_home(context))
    for folder, mode in ((home, 0o755), (home / ".ssh", 0o700)):
        folder.mkdir(mode=mode, exist_ok=True)
        if folder.is_symlink() or (folder.stat().st_uid not in (0, person.uid)):
            raise StepError(
                expected=f"{folder} belongs to {_NAME}",
                seen=f"it is a link or belongs to uid {folder.lstat().st_uid}",
                action="see whose it is and move it away",
            )
        os.chown(folder, *person.owner)
    _make_key(home / ".ssh", person, node=context.instance_id)
    _authorise(home / ".ssh", person)
    if person.home != _home(context):
        _move_home(context)


def _make_key(keys: Path, person: Account, *, node: str) -> None:
    key = keys / KEY
    if not key.exists():
        own = keys / f".{KEY}.{node}"
        for old in (own, own.with_name(f"{own.name}.pub")):
            old.unlink(missing_ok=True)
        run_program("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", _NAME, "-f", str(own))
        os.chown(own, *person.owner)
        try:
            os.link(own, key)  # fails where another node was first
        except FileExistsError:
            pass
        finally:
            for mine in (own, own.with_name(f"{own.name}.pub")):
                mine.unlink(missing_ok=True)
    public = run_program("ssh-keygen", "-y", "-f", str(key))
    write_whole(keys / f"{KEY}.pub", public.encode(), owner=person.owner)


def _authorise(keys: Path, person: Account) -> None:
    public = (keys / f"{KEY}.pub").read_text().strip()
    path = keys / "authorized_keys"
    before = path.read_text().splitlines() if path.exists() else []
    if public not in before:
        write_whole(path, ("\n".join([*before, public]) + "\n").encode(), mode=0o600, owner=person.owner)


def _move_home(context: Context) -> None:
    prefix = [] if context.root == Path("/") else ["--prefix", str(context.root)]
    complaints: list[StepError] = []

    def done() -> bool:
        try:
            run_program("usermod", *prefix, "--home", _home(context), _NAME)
        except StepError as error:
            complaints.append(error)
            return False
        return True

    if not wait_until(done, timeout_s=_BUSY_S):
        raise complaints[-1]


def verify(context: Context) -> str:
    person = account(context, _NAME)
    if not context.fsx_mount_path:
        return "this group mounts no shared file system"
    if person is None:
        return f"there is no account {_NAME}"
    missing = _missing(context, person)
    if missing:
        raise StepError(
            expected=f"{_NAME} has its home at {_home(context)} and a key pair in it",
            seen=missing,
            action="look for a program on the node that changes them",
        )
    return f"home {_home(context)}, key {KEY}"
