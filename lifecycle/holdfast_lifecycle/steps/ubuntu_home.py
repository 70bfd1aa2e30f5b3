"""
The account ``ubuntu`` has its home and a key pair on the shared file system.

As AMI-based configuration leaves it; with the key it goes from node to node.
"""

from pathlib import Path

from holdfast_lifecycle.model import Context, StepError, User
from holdfast_lifecycle.node import KEY, account, make_home, missing_home, run_program, wait_until

_NAME = "ubuntu"
_BUSY_S = 60.0
"""usermod refuses while the account has processes."""


def _home(context: Context) -> str:
    return f"{context.fsx_mount_path}/{_NAME}"


def _missing(context: Context) -> str:
    person = account(context, _NAME)
    if person is None or not context.fsx_mount_path:
        return ""
    if person.home != _home(context):
        return f"its home is {person.home}"
    return missing_home(context, User(_NAME, person.uid, _home(context)))


def check(context: Context) -> bool:
    return not _missing(context)


def apply(context: Context) -> None:
    person = account(context, _NAME)
    assert person is not None
    make_home(context, User(_NAME, person.uid, _home(context)))
    if person.home != _home(context):
        _move_home(context)


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
    if not context.fsx_mount_path:
        return "this group mounts no shared file system"
    if account(context, _NAME) is None:
        return f"there is no account {_NAME}"
    if missing := _missing(context):
        raise StepError(
            expected=f"{_NAME} has its home at {_home(context)} and a key pair in it",
            seen=missing,
            action="check for a program on the node that changes them",
        )
    return f"home {_home(context)}, key {KEY}"
