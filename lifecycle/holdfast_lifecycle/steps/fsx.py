"""
The shared file system is mounted where the configuration says, and writable by root and by every user.

HyperPod or the step ``mounts`` mounts it; this step waits a little, opens the shared folders to users, and verifies
that a file can be written, synced, read back and removed.
"""

import os
import time
from pathlib import Path
from typing import Optional

from holdfast_lifecycle.model import Context, StepError, User
from holdfast_lifecycle.node import as_user

_WAIT_S = 60.0
_OPEN_TO_ALL = 0o1777
_REMOTE = ("lustre", "nfs", "nfs4")


def mount_type(context: Context) -> str:
    return _mounted(context)[0]


def mount_options(context: Context) -> list[str]:
    return _mounted(context)[1]


def _mounted(context: Context) -> tuple[str, list[str]]:
    found: tuple[str, list[str]] = ("", [])
    for line in context.path("/proc/self/mountinfo").read_text().splitlines():
        fields = line.split()
        if fields[4] == context.fsx_mount_path:
            kind, _, options = fields[fields.index("-") + 1 :]
            is_bind = kind not in _REMOTE and fields[3] != "/"
            name = f"directory stand-in on {kind}" if is_bind else kind
            found = name, [*fields[5].split(","), *options.split(",")]
    return found


def check(context: Context) -> bool:
    return not context.fsx_mount_path or bool(mount_type(context) and not _closed_folders(context))


def apply(context: Context) -> None:
    deadline = time.monotonic() + _WAIT_S
    while not mount_type(context):
        if time.monotonic() > deadline:
            raise StepError(
                expected=f"a file system is mounted at {context.fsx_mount_path}",
                seen=f"nothing was after {_WAIT_S:g} s",
                action="check that the file system is AVAILABLE, in the nodes' subnet, and that its security group"
                " lets the nodes reach ports 988 and 1018-1023",
            )
        time.sleep(0.1)
    for folder in _closed_folders(context):
        folder.chmod(_OPEN_TO_ALL)


def _closed_folders(context: Context) -> list[Path]:
    """Mount point and its top folders of root that are not open to users."""
    top = context.path(context.fsx_mount_path)
    folders = [top, *(Path(entry.path) for entry in os.scandir(top) if entry.is_dir(follow_symlinks=False))]
    states = [(folder, folder.stat()) for folder in folders if not folder.name.startswith(".")]
    return [folder for folder, state in states if state.st_uid == 0 and state.st_mode & 0o7777 != _OPEN_TO_ALL]


def verify(context: Context) -> str:
    if not context.fsx_mount_path:
        return "this group mounts no shared file system"
    _probe_all(context)
    return f"{context.fsx_mount_path} is {mount_type(context)}"


def _probe_all(context: Context) -> None:
    _probe(context, None)
    for user in context.users:
        _as_user(context, user)


def _probe(context: Context, user: Optional[User]) -> None:
    who = user.name if user else "root"
    path = context.path(f"{context.fsx_mount_path}/.holdfast-probe-{context.instance_id}-{who}")
    content = f"{context.instance_id} {who} {time.time_ns()}\n".encode()
    try:
        with path.open("wb") as file:
            file.write(content)
            file.flush()
            if user is None:  # once: of users it is their rights that are asked
                os.fsync(file.fileno())
        same = path.read_bytes() == content
        path.unlink()
    except OSError as error:
        raise StepError(
            expected=f"{who} can write, read and remove a file in {context.fsx_mount_path}",
            seen=str(error),
            action="check free space, the mount options and the permissions of the file system",
        ) from error
    if not same:
        raise StepError(
            expected=f"{path} reads back as {who} wrote it",
            seen="other bytes",
            action="drain the node and check the file system",
        )


def _as_user(context: Context, user: User) -> None:
    complaint = as_user(user, lambda: _probe(context, user))
    if complaint:
        raise StepError(
            expected=f"user {user.name} can write, read and remove a file in {context.fsx_mount_path}",
            seen=complaint,
            action=f"make {context.fsx_mount_path} writable for users, for example with mode 1777",
        )


# The users must exist as numbers only, so this step does not need theirs.
