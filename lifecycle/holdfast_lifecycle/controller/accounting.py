"""Files of accounting: lines of slurm.conf, and slurmdbd.conf."""

import json
import os
import re
import secrets

from holdfast_lifecycle.controller.database import DEFAULT_SCHEMA
from holdfast_lifecycle.model import AccountingDatabase, Context, StepError
from holdfast_lifecycle.node import account, includes, run_program, slurm_file, slurm_settings, with_lines, write_whole

_CERTIFICATES = "/etc/ssl/certs/ca-certificates.crt"
"""Of Ubuntu. Slurm asks its client library for TLS only where an SSL_ option is given (src/database/mysql_common.c),
and MariaDB's does without unless it is asked; slurmdbd.conf(5), StorageParameters."""
_TYPE = "accounting_storage/slurmdbd"
_PORT = 6819
_USER = "slurm"
_REGION = re.compile(r"arn:[a-z0-9-]+:secretsmanager:([a-z0-9-]+):\d{12}:secret:\S+")


def sends_records(context: Context) -> bool:
    return slurm_settings(context).get("accountingstoragetype", "") == _TYPE


def send_records(context: Context) -> bool:
    """Enable that in accounting.conf, which HyperPod includes and leaves to others; True if changed."""
    if sends_records(context):
        return False
    path, conf = slurm_file(context, "accounting.conf"), slurm_file(context, "slurm.conf")
    lines = (
        "JobAcctGatherType=jobacct_gather/linux",
        "JobAcctGatherFrequency=30",
        f"AccountingStorageType={_TYPE}",
        f"AccountingStorageHost={context.address}",
        f"AccountingStoragePort={_PORT}",
    )
    before = path.read_text() if path.exists() else ""
    write_whole(path, with_lines(before, lines).encode())
    if not includes(context, "accounting.conf"):
        # Slurm hands an included file on to the nodes when its name has no folder in it.
        text = conf.read_text().rstrip("\n") + "\ninclude accounting.conf\n"
        write_whole(conf, text.encode(), mode=conf.stat().st_mode & 0o7777)
    return True


def point_slurmdbd(context: Context) -> bool:
    """Write slurmdbd.conf for the external database, or else for MariaDB here with a new password; True if changed."""
    found, database = slurm_settings(context, "slurmdbd.conf"), context.accounting
    if database is None:
        if "storagetype" in found:
            return False
        storage = {"StorageHost": "localhost", "StorageUser": _USER, "StoragePass": secrets.token_urlsafe(24)}
    else:
        storage = _outside(database)
        if all(found.get(name.lower()) == value for name, value in storage.items()):
            return False
    user = slurm_settings(context).get("slurmuser", "root")
    settings = {
        "AuthType": "auth/munge",
        # As `hostname -s` says it, or slurmdbd refuses to run here.
        "DbdHost": os.uname().nodename.split(".")[0],
        "DbdPort": str(_PORT),
        "SlurmUser": user,
        "LogFile": "/var/log/slurm/slurmdbd.log",
        "PidFile": "/run/slurmdbd.pid",
        "StorageType": "accounting_storage/mysql",
        "StorageLoc": DEFAULT_SCHEMA,
        **storage,
    }
    person = account(context, user)
    owner = person.owner if person else (0, 0)
    logs = context.path("/var/log/slurm")
    if not logs.exists():
        logs.mkdir(parents=True)
        os.chown(logs, *owner)
    text = "# Written by holdfast_lifecycle.\n" + "".join(f"{name}={value}\n" for name, value in settings.items())
    write_whole(slurm_file(context, "slurmdbd.conf"), text.encode(), mode=0o600, owner=owner)
    return True


def _outside(database: AccountingDatabase) -> dict[str, str]:
    region = _REGION.fullmatch(database.secret_arn)
    if region is None:
        raise StepError(
            expected="secret_arn of accounting.json is the ARN of a secret",
            seen=repr(database.secret_arn),
            action="give the ARN that Secrets Manager shows, with its suffix",
        )
    names = ("--secret-id", database.secret_arn, "--region", region.group(1))
    answer = run_program(
        "aws", "secretsmanager", "get-secret-value", *names, "--query", "SecretString", "--output", "text", timeout_s=60
    )
    try:
        secret = json.loads(answer)
        user, password = str(secret["username"]), str(secret["password"])
    except (ValueError, KeyError, TypeError) as error:
        raise StepError(
            expected=f"{database.secret_arn} is a JSON object with username and password",
            seen=f"{type(error).__name__} when reading it",
            action="store it as RDS does",
        ) from None
    if re.search(r"[#\s]", password):
        raise StepError(
            expected="the database's password has neither blanks nor '#'",
            seen="it has",
            action="change it: slurmdbd.conf cannot hold such a password",
        )
    return {
        "StorageHost": database.endpoint,
        "StoragePort": str(database.port),
        "StorageUser": user,
        "StoragePass": password,
        **({"StorageParameters": f"SSL_CA={_CERTIFICATES}"} if database.tls else {}),
    }
