"""
Slurm's accounting answers: in a database outside of the cluster where the environment has one, otherwise in MariaDB
here.

In extension mode HyperPod has set it up: this step only points it at an external database, or restarts it after
``slurm_state`` has restored earlier data. In custom mode all of it is ours, and it precedes slurmctld, which does not
start the first time without it.
"""

from pathlib import Path

from holdfast_lifecycle.controller import (
    DATA,
    admit_slurm,
    ask,
    data_owner,
    make_data,
    point_slurmdbd,
    send_records,
    sends_records,
    start_database,
)
from holdfast_lifecycle.model import Context, StepError
from holdfast_lifecycle.node import (
    answers,
    disable,
    inactive,
    slurm_settings,
    start,
    stop,
    wait_for_configuration,
    wait_until,
)
from holdfast_lifecycle.steps.slurm.state import state_location

_ANSWER_S = 90.0
_QUESTION = ("sacctmgr", "--noheader", "list", "cluster")


def _is_ours(context: Context) -> bool:
    """True if accounting is ours to start: not where HyperPod has, and nothing was replaced."""
    return context.starts_slurm or context.accounting is not None or context.path(DATA).is_symlink()


def _services(context: Context) -> list[str]:
    return ["slurmdbd"] if context.accounting is not None else ["mariadb", "slurmdbd"]


def _complaint(context: Context) -> str:
    host = slurm_settings(context, "slurmdbd.conf").get("storagehost", "localhost")
    if context.accounting is not None and host != context.accounting.endpoint:
        return f"slurmdbd.conf has StorageHost={host}"
    if not sends_records(context):
        return "slurm.conf has no AccountingStorageType=accounting_storage/slurmdbd"
    down = inactive(_services(context))
    if down:
        return f"not active: {', '.join(down)}"
    return "" if answers(*_QUESTION)() else "slurmdbd does not answer"


def check(context: Context) -> bool:
    return not _is_ours(context) or not _complaint(context)


def apply(context: Context) -> None:
    wait_for_configuration(context)
    moves_out = context.accounting is not None and _complaint(context).startswith("slurmdbd.conf")
    changed = [send_records(context), point_slurmdbd(context)]
    if any(changed):
        stop("slurmctld")
        stop("slurmdbd")
    if moves_out:
        # Holds the id that the cluster has in the old database; a newer slurmctld would not go on with the new one.
        (state_location(context) / "clustername").unlink(missing_ok=True)
    if context.accounting is not None:
        disable("mariadb")
    else:
        data = context.path(DATA).resolve()
        data.mkdir(parents=True, exist_ok=True)
        make_data(context, data, owner=data_owner(context, data))
        start_database()
        admit_slurm(context)
    start("slurmdbd")
    wait_until(answers(*_QUESTION), timeout_s=_ANSWER_S)


def verify(context: Context) -> str:
    if not _is_ours(context):
        return "HyperPod's own"
    complaint = _complaint(context)
    if complaint:
        raise StepError(
            expected="slurmdbd answers",
            seen=f"{complaint}, {_ANSWER_S:g} s after its start",
            action="read slurmdbd's log and 'journalctl -u mariadb -u slurmdbd' on this node",
        )
    if context.accounting is not None:
        return f"records go to {context.accounting.endpoint}"
    return f"records go to MariaDB here, data in {_data(context)}"


def _data(context: Context) -> Path:
    """MariaDB's data directory; refuses any but the prepared one."""
    reported = Path(ask("SELECT @@datadir").strip() or "/")
    if reported.resolve() != context.path(DATA).resolve():
        raise StepError(
            expected=f"MariaDB keeps its data in {DATA}",
            seen=f"got {reported}",
            action=f"remove the setting datadir from MariaDB's files, or set it to {DATA}",
        )
    return reported.resolve()
