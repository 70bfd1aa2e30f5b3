"""The accounts that people and jobs use exist: same name, number, home and groups on every node."""

from pathlib import Path
from typing import NamedTuple

from holdfast_lifecycle.model import Context, StepError, User
from holdfast_lifecycle.node import account, home_of, run_program, wait_until

_BUSY_S = 60.0
"""usermod refuses while the account has processes."""


class _Accounts(NamedTuple):
    """uid by user name, gid and members by group name."""

    uids: dict[str, int]
    gids: dict[str, int]
    members: dict[str, list[str]]


def _read(context: Context) -> _Accounts:
    groups = _rows(context.path("/etc/group"))
    return _Accounts(
        uids=_numbers(_rows(context.path("/etc/passwd"))),
        gids=_numbers(groups),
        members={row[0]: row[3].split(",") for row in groups if len(row) > 3},
    )


def _rows(path: Path) -> list[list[str]]:
    return [line.split(":") for line in path.read_text().splitlines() if line and line[0] not in "#+-"]


def _numbers(rows: list[list[str]]) -> dict[str, int]:
    return {row[0]: int(row[2]) for row in rows if len(row) > 2 and row[2].isdigit()}


def _lacks(context: Context, user: User, accounts: _Accounts) -> str:
    found = account(context, user.name)
    if found is None or not found.uid == user.uid == accounts.gids.get(user.name):
        return f"uid {accounts.uids.get(user.name)}, gid {accounts.gids.get(user.name)}"
    if found.home != home_of(context, user):
        return f"its home is {found.home}"
    missing = [group for group in user.groups if user.name not in accounts.members.get(group, [])]
    return f"it is not in the groups {', '.join(missing)}" if missing else ""


def check(context: Context) -> bool:
    accounts = _read(context)
    return not any(_lacks(context, user, accounts) for user in context.users)


def apply(context: Context) -> None:
    accounts = _read(context)
    for user in context.users:
        _refuse_clash(user, accounts)
        _refuse_groups(user, accounts)
    prefix = [] if context.root == Path("/") else ["--prefix", str(context.root)]
    for user in context.users:
        number, has_group, home = str(user.uid), user.name in accounts.gids, home_of(context, user)
        if user.name not in accounts.uids:
            # A group of its own gets the number of the user, if nobody has it (shadow-utils, find_new_gid).
            group = ["--gid", number] if has_group else ["--user-group"]
            place = ["--no-create-home", "--home-dir", home, "--shell", "/bin/bash"]
            run_program("useradd", *prefix, "--uid", number, *group, *place, user.name)
        elif not has_group:
            run_program("groupadd", *prefix, "--gid", number, user.name)
        found = account(context, user.name)
        if found is not None and found.home != home:
            _change(*prefix, "--home", home, user.name)
        if user.groups:
            _change(*prefix, "--append", "--groups", ",".join(user.groups), user.name)


def _change(*arguments: str) -> None:
    complaints: list[StepError] = []

    def done() -> bool:
        try:
            run_program("usermod", *arguments)
        except StepError as error:
            complaints.append(error)
            return False
        return True

    if not wait_until(done, timeout_s=_BUSY_S):
        raise complaints[-1]


def _refuse_groups(user: User, accounts: _Accounts) -> None:
    unknown = [group for group in user.groups if group not in accounts.gids]
    if unknown:
        raise StepError(
            expected=f"groups {', '.join(user.groups)} of user '{user.name}' exist on the node",
            seen=f"no group {', '.join(unknown)}",
            action="take it out of lifecycle.users in the environment file, or use an image that has it",
        )


def _refuse_clash(user: User, accounts: _Accounts) -> None:
    kinds = (("user", "uid", accounts.uids), ("group", "gid", accounts.gids))
    for kind, number_name, numbers in kinds:
        holder = next((name for name, number in numbers.items() if number == user.uid), user.name)
        if holder != user.name:
            raise StepError(
                expected=f"{kind} '{user.name}' has {number_name} {user.uid}",
                seen=f"{number_name} {user.uid} belongs to {kind} '{holder}' already",
                action=f"give '{user.name}' another uid under lifecycle.users in the environment file",
            )
        if numbers.get(user.name, user.uid) != user.uid:
            raise StepError(
                expected=f"{kind} '{user.name}' has {number_name} {user.uid}",
                seen=f"{kind} '{user.name}' exists with {number_name} {numbers[user.name]}",
                action="set that uid under lifecycle.users in the environment file, or choose another name",
            )


def verify(context: Context) -> str:
    accounts = _read(context)
    for user in context.users:
        lacks = _lacks(context, user, accounts)
        if lacks:
            raise StepError(
                expected=f"user and group '{user.name}' have number {user.uid} and home {home_of(context, user)}",
                seen=lacks,
                action="check for a program on the node that rewrites /etc/passwd or /etc/group",
            )
    return ", ".join(f"{user.name}={user.uid}" for user in context.users)
