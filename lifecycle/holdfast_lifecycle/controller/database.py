"""MariaDB on the controller: data directory, and slurmdbd's account."""

import re
from pathlib import Path

from holdfast_lifecycle.model import Context, StepError
from holdfast_lifecycle.node import (
    account,
    answers,
    has_program,
    name_of,
    own_folder,
    run_program,
    slurm_settings,
    start,
    wait_until,
)

DATA = "/var/lib/mysql"
"""The default of Debian's and Ubuntu's packages."""
DEFAULT_SCHEMA = "slurm_acct_db"
_READY_S = 120.0
_FILL_S = 120.0
_NAME = re.compile(r"[A-Za-z0-9_.$-]+")


def client() -> str:
    return "mariadb" if has_program("mariadb") else "mysql"


def ask(statement: str) -> str:
    return run_program(client(), "--user=root", "--batch", "--skip-column-names", text=statement)


def data_owner(context: Context, data: Path) -> tuple[int, int]:
    """Account that MariaDB runs as: the package's, or the owner of existing data."""
    found = account(context, "mysql")
    if found is not None:
        return found.owner
    try:
        state = data.stat()
    except FileNotFoundError:
        return 0, 0
    return state.st_uid, state.st_gid


def make_data(context: Context, data: Path, *, owner: tuple[int, int]) -> None:
    """Fill an empty data directory, as the package does at installation."""
    if (data / "mysql").is_dir() or not has_program("mariadb-install-db"):
        return
    run_program(
        "mariadb-install-db",
        f"--datadir={data}",
        f"--user={name_of(context, owner[0])}",
        "--auth-root-authentication-method=socket",
        "--skip-test-db",
        timeout_s=_FILL_S,
    )
    own_folder(data, owner=owner)


def start_database() -> None:
    """Start it and wait for a response: it may first recover from a crash."""
    start("mariadb")
    if not wait_until(answers(client(), "--user=root", "--execute=SELECT 1"), timeout_s=_READY_S):
        raise StepError(
            expected=f"MariaDB answers within {_READY_S:g} s",
            seen="it does not",
            action="read 'journalctl -u mariadb' on this node; MariaDB's own log reports unreadable data",
        )


def admit_slurm(context: Context) -> None:
    """Set slurmdbd's password, which changes with a take-over."""
    settings = slurm_settings(context, "slurmdbd.conf")
    user, password = settings.get("storageuser", ""), settings.get("storagepass", "")
    if not user or not password or user == "root":
        return
    schema = settings.get("storageloc", DEFAULT_SCHEMA)
    for name in (user, schema):
        if not _NAME.fullmatch(name):
            raise StepError(
                expected="StorageUser and StorageLoc of slurmdbd.conf are plain names",
                seen=repr(name),
                action="give them letters, digits and _ only",
            )
    secret = password.replace("\\", "\\\\").replace("'", "\\'")
    hosts = ["localhost"]
    if settings.get("storagehost", "localhost") == "127.0.0.1":
        hosts.append("127.0.0.1")
    for host in hosts:
        account = f"'{user}'@'{host}'"
        ask(
            f"CREATE DATABASE IF NOT EXISTS `{schema}`;\n"
            f"CREATE USER IF NOT EXISTS {account} IDENTIFIED BY '{secret}';\n"
            f"ALTER USER {account} IDENTIFIED BY '{secret}';\n"
            f"GRANT ALL ON `{schema}`.* TO {account};\n"
        )
