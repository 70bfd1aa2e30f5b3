"""
The users of the environment file have their homes; one on a shared file system also has a key pair, for all nodes.

As AWS's add_users.sh and gen-keypair-ubuntu.sh leave them.
"""

from holdfast_lifecycle.model import Context, StepError, User
from holdfast_lifecycle.node import home_of, make_home, missing_home, place_folder


def check(context: Context) -> bool:
    return not any(missing_home(context, user) for user in context.users)


def apply(context: Context) -> None:
    for user in context.users:
        _refuse_unmounted(context, user)
        make_home(context, user)
        data = context.path(f"{context.fsx_mount_path}/{user.name}")
        if context.fsx_mount_path and not data.exists():  # where its home is elsewhere, as add_users.sh has it
            place_folder(context, data, user)


def _refuse_unmounted(context: Context, user: User) -> None:
    top = context.home_mount_path
    if not top or not f"{home_of(context, user)}/".startswith(f"{top}/"):
        return
    mounted = [line.split()[4] for line in context.path("/proc/self/mountinfo").read_text().splitlines()]
    if top not in mounted:
        raise StepError(
            expected=f"the file system of home directories is mounted at {top}",
            seen="no file system is mounted there",
            action="check that the file system is AVAILABLE and in reach of the nodes",
        )


def verify(context: Context) -> str:
    for user in context.users:
        missing = missing_home(context, user)
        if missing:
            raise StepError(
                expected=f"user '{user.name}' has the home {home_of(context, user)}",
                seen=missing,
                action="check for a program on the node that changes it",
            )
    return ", ".join(f"{user.name}: {home_of(context, user)}" for user in context.users)
