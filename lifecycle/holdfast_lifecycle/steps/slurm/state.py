"""
Slurm's state and accounting data are on the shared file system, where they outlive the controller's instance.

The directories of slurmctld and MariaDB become links, so HyperPod's files stay unchanged. Existing state is taken over
with the daemons stopped; later steps start them. Otherwise HyperPod's state is moved: slurmctld's while it runs,
MariaDB's in the background, because slurmctld queues records for slurmdbd meanwhile.
"""

from pathlib import Path

from holdfast_lifecycle.controller import (
    DATA,
    LOCK,
    LOG,
    accounting_is_up,
    adopt,
    adopt_running,
    data_owner,
    is_moved,
    is_running,
    leave_running,
    move_accounting,
)
from holdfast_lifecycle.model import Context, StepError
from holdfast_lifecycle.node import (
    ACCOUNTING,
    STATE,
    SharedState,
    account,
    add_to_unit,
    drop_in,
    is_active,
    is_open_elsewhere,
    is_written,
    run_program,
    slurm_settings,
    stop,
    wait_for_configuration,
    wait_until,
)
from holdfast_lifecycle.steps.fsx import mount_options

_AFTER_MOUNT = """\
# Written by holdfast_lifecycle: what this daemon keeps is on {mount_path}, which may be mounted after it is started.
[Unit]
RequiresMountsFor={mount_path}
StartLimitIntervalSec=0
[Service]
Restart=on-failure
RestartSec=5
"""
_LOCK_S = 60.0
_RELEASE_S = 300.0
"""Lustre evicts a silent client after some multiple of obd_timeout, 100 s by default; 2.25 is the largest that we found
written."""
_HYPERPOD_S = 60.0


def state_location(context: Context) -> Path:
    """StateSaveLocation of slurmctld; refuses a directory that is not its own."""
    found = slurm_settings(context).get("statesavelocation", "")
    if len(Path(found).parts) < 4:
        raise StepError(
            expected="slurm.conf names a directory of its own as StateSaveLocation",
            seen=f"StateSaveLocation={found}" if found else "no StateSaveLocation, so Slurm's default is /var/spool",
            action="set it to /var/spool/slurmctld",
        )
    return context.path(found)


def _drop_ins(context: Context) -> dict[str, str]:
    text = _AFTER_MOUNT.format(mount_path=context.fsx_mount_path)
    return dict.fromkeys(("slurmctld",) if context.accounting is not None else ("slurmctld", "mariadb"), text)


def _is_linked(link: Path, target: Path) -> bool:
    return link.is_symlink() and link.readlink() == target


def check(context: Context) -> bool:
    if not context.fsx_mount_path:
        return True
    shared = SharedState.of(context)
    owner = shared.owner()
    if owner is None or owner.instance_id != context.instance_id:
        return False
    if not _is_linked(state_location(context), shared.place(STATE, owner.number)) or not shared.series.exists():
        return False
    if not all(is_written(drop_in(context, unit), text.encode()) for unit, text in _drop_ins(context).items()):
        return False
    return bool(_accounting(context))


def _accounting(context: Context) -> str:
    if context.accounting is not None:
        return f"accounting is in {context.accounting.endpoint}"
    shared = SharedState.of(context)
    owner = shared.owner()
    place = shared.place(ACCOUNTING, owner.number if owner else 0)
    if place.is_dir() and _is_linked(context.path(DATA), place):
        return f"accounting is in {place}"
    if is_running(context.path(LOCK)):
        return "accounting is being moved there"
    return "there is no accounting on this node" if is_moved(context) else ""


def apply(context: Context) -> None:
    _refuse_lonely_locks(context)
    wait_for_configuration(context)
    local_state, data = state_location(context), context.path(DATA)
    shared = SharedState.of(context)
    shared.prepare()
    with shared.locked(timeout_s=_LOCK_S):
        own = shared.owner()
        if own is not None and own.instance_id == context.instance_id:
            stop("slurmdbd")
            stop("mariadb")
        left = shared.find(ACCOUNTING) if context.accounting is None else None
        if left is not None:
            if not context.starts_slurm:
                # HyperPod must have ended with MariaDB before it is taken away.
                wait_until(lambda: accounting_is_up(context), timeout_s=_HYPERPOD_S)
            _wait_until_released(context, left, owner=own.instance_id if own else "")
        begins_empty = shared.find(STATE) is None
        number = shared.take(context.instance_id)
        shared.name_series(begins_empty=begins_empty)
        _take_state(context, local_state, shared.place(STATE, number))
        if left is not None or (context.starts_slurm and context.accounting is None):
            stop("slurmdbd")
            stop("mariadb")
            adopt(data, shared.place(ACCOUNTING, number), owner=data_owner(context, data))
    for unit, text in _drop_ins(context).items():
        add_to_unit(context, unit, text)
    if not _accounting(context):
        leave_running(lambda: move_accounting(context), lock=context.path(LOCK), log=context.path(LOG))


def _take_state(context: Context, local: Path, place: Path) -> None:
    user = account(context, slurm_settings(context).get("slurmuser", "root"))
    owner = user.owner if user else (0, 0)
    if not place.exists() and local.is_dir() and not local.is_symlink() and is_active("slurmctld"):
        if adopt_running(local, place, owner=owner):
            run_program("scontrol", "reconfigure")
        return
    stop("slurmctld")
    adopt(local, place, owner=owner)
    for unfinished in place.glob("*.new"):
        # A controller that was stopped amid a save may still write into it, and this one would use the same name.
        unfinished.unlink()


def _refuse_lonely_locks(context: Context) -> None:
    """With ``localflock`` nodes see only their own locks."""
    if "localflock" in mount_options(context):
        raise StepError(
            expected=f"locks on {context.fsx_mount_path} are seen by all nodes",
            seen="it is mounted with localflock",
            action="mount it with flock, as the FSx for Lustre guide does",
        )


def _wait_until_released(context: Context, data: Path, *, owner: str) -> None:
    """Wait until no MariaDB on any node has it open: two would destroy it."""
    if not wait_until(lambda: not is_open_elsewhere(data), timeout_s=_RELEASE_S):
        raise StepError(
            expected=f"the accounting data in {data} is not in use",
            seen=f"a MariaDB server had it open for {_RELEASE_S:g} s; the controller was {owner or 'unknown'}",
            action="check that this instance is gone (aws sagemaker describe-cluster-node) or stop mariadb on it,"
            f" then run {context.script} --only slurm_state",
        )


def verify(context: Context) -> str:
    if not context.fsx_mount_path:
        return "this group mounts no shared file system: state and accounting end with this instance"
    if not check(context):
        raise StepError(
            expected="Slurm's state and accounting are on the shared file system",
            seen=f"owner {SharedState.of(context).owner()}, accounting: {_accounting(context) or 'not moved'}",
            action=f"read {LOG}, and check for another controller of this cluster",
        )
    owner = SharedState.of(context).owner()
    assert owner is not None
    return f"state is in {SharedState.of(context).place(STATE, owner.number)}, {_accounting(context)}"
