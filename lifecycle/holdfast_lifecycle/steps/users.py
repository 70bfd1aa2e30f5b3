"""The accounts that jobs run under exist: same name and number on every node, home on the local disk."""

import os
from pathlib import Path
from typing import NamedTuple

from holdfast_lifecycle.model import Context, StepError, User
from holdfast_lifecycle.node import run_program


class _Accounts(NamedTuple):
    """uid by user name and gid by group name."""

    uids: dict[str, int]
    gids: dict[str, int]


def _read(context: Context) -> _Accounts:
    return _Accounts(uids=_numbers(context.path("/etc/passwd")), gids=_numbers(context.path("/etc/group")))


def _numbers(path: Path) -> dict[str, int]:
    rows = (line.split(":") for line in path.read_text().splitlines() if line and line[0] not in "#+-")
    return {row[0]: int(row[2]) for row in rows if len(row) > 2 and row[2].isdigit()}


def _home(context: Context, user: User) -> Path:
    return context.path(f"/home/{user.name}")


def _is_complete(context: Context, user: User, accounts: _Accounts) -> bool:
    try:
        owner = _home(context, user).stat().st_uid
    except FileNotFoundError:
        return False
    return accounts.uids.get(user.name) == user.uid == accounts.gids.get(user.name) == owner


def check(context: Context) -> bool:
    accounts = _read(context)
    return all(_is_complete(context, user, accounts) for user in context.users)


def apply(context: Context) -> None:
    accounts = _read(context)
    for user in context.users:
        _refuse_clash(user, accounts)
    prefix = [] if context.root == Path("/") else ["--prefix", str(context.root)]
    for user in context.users:
        number, has_group = str(user.uid), user.name in accounts.gids
        if user.name not in accounts.uids:
            # A group of its own gets the number of the user, if nobody has it (shadow-utils, find_new_gid).
            group = ["--gid", number] if has_group else ["--user-group"]
            run_program("useradd", *prefix, "--uid", number, *group, "--no-create-home", *_PLACE, user.name)
        elif not has_group:
            run_program("groupadd", *prefix, "--gid", number, user.name)
        home = _home(context, user)
        home.mkdir(parents=True, exist_ok=True)
        home.chmod(0o750)
        os.chown(home, user.uid, user.uid)


_PLACE = ("--shell", "/bin/bash")


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
        if not _is_complete(context, user, accounts):
            raise StepError(
                expected=f"user and group '{user.name}' have number {user.uid} and own {_home(context, user)}",
                seen=f"uid {accounts.uids.get(user.name)}, gid {accounts.gids.get(user.name)}",
                action="look for a program on the node that rewrites /etc/passwd or /etc/group",
            )
    return ", ".join(f"{user.name}={user.uid}" for user in context.users)
