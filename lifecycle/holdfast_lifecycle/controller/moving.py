"""Move of the directories of slurmctld and MariaDB to the shared file system."""

import json
import shutil
import time
from pathlib import Path

from holdfast_common import kinds
from holdfast_lifecycle.controller.database import DATA, admit_slurm, data_owner, start_database
from holdfast_lifecycle.model import Context, StepError
from holdfast_lifecycle.node import (
    ACCOUNTING,
    SharedState,
    copy_folder,
    fill_folder,
    is_active,
    own_folder,
    point_to,
    run_program,
    slurm_settings,
    start,
    stop,
    wait_until,
    write_whole,
)

LOCK = "/run/holdfast/moving-accounting.lock"
LOG = "/var/log/holdfast/moving-accounting.log"
_DONE = "/var/lib/holdfast/moved-accounting.json"
_HYPERPOD_S = 900.0
"""How long HyperPod may take until its own accounting answers."""
_LOCK_S = 60.0
_ANSWER_S = 90.0


def adopt(local: Path, shared: Path, *, owner: tuple[int, int]) -> None:
    """
    Make ``local`` a link to the shared directory, which starts as a copy of it. The old content stays; repeatable.
    """
    if not shared.exists():
        if local.is_dir():
            copy_folder(local, shared, owner=owner)
        else:
            shared.mkdir(mode=0o700)
    own_folder(shared, owner=owner)
    if local.is_symlink() and local.readlink() == shared:
        return
    if local.exists() and not local.is_symlink():
        local.rename(_free_name(local))
    local.parent.mkdir(parents=True, exist_ok=True)
    point_to(local, shared)


def adopt_running(local: Path, shared: Path, *, owner: tuple[int, int]) -> bool:
    """
    The same for slurmctld's directory while it runs, since stopping it takes seconds; True if it must save again.

    slurmctld opens every file by its path, so it uses the new directory from the exchange on. Files saved before are
    copied after that, never over newer ones. An interrupted save leaves ``*.new`` behind, and is repaired by another
    save.
    """
    unfinished = shared.with_name(f"{shared.name}.part")
    shutil.rmtree(unfinished, ignore_errors=True)
    unfinished.mkdir(mode=0o700)
    unfinished.chmod(0o700)
    unfinished.rename(shared)
    own_folder(shared, owner=owner)
    kept = _free_name(local)
    local.rename(kept)
    point_to(local, shared)
    fill_folder(kept, shared, owner=owner)
    return any(kept.glob("*.new"))


def _free_name(path: Path) -> Path:
    number = 1
    while (free := path.with_name(f"{path.name}.on-this-node-{number}")).exists():
        number += 1
    return free


def accounting_is_up(context: Context) -> bool:
    if not slurm_settings(context).get("accountingstoragetype", "").endswith("slurmdbd"):
        return False
    if not is_active("slurmdbd"):
        return False
    try:
        return bool(run_program("sacctmgr", "--noheader", "--parsable2", "list", "cluster", timeout_s=15).strip())
    except StepError:
        return False


def is_moved(context: Context) -> bool:
    """True if the background work is done, also with nothing to move."""
    return context.path(_DONE).exists()


def move_accounting(context: Context, *, hyperpod_s: float = _HYPERPOD_S) -> None:
    """In the background: wait for HyperPod's accounting, and move its data; writes an event at the end."""
    began = time.monotonic()
    events = context.event_log()
    try:
        if wait_until(lambda: accounting_is_up(context), timeout_s=hyperpod_s):
            reported, outcome = f"accounting data is in {_move(context)}", "moved"
        else:
            reported, outcome = f"no slurmdbd answered within {hyperpod_s:g} s: nothing to move", "nothing"
    except (StepError, OSError) as error:
        seen = error.seen if isinstance(error, StepError) else str(error)
        action = error.action if isinstance(error, StepError) else f"check space and permissions, and {LOG}"
        detail = {"step": "slurm_state", "outcome": "failed"}
        events.write(kind=kinds.STEP_FAILED, evidence=seen, action=action, detail=detail)
        return
    write_whole(context.path(_DONE), (json.dumps({"outcome": outcome}) + "\n").encode())
    events.write(
        kind=kinds.STEP_FINISHED,
        evidence=reported,
        duration_s=time.monotonic() - began,
        detail={"step": "slurm_state", "outcome": outcome},
    )


def _move(context: Context) -> Path:
    shared = SharedState.of(context)
    data = context.path(DATA)
    with shared.locked(timeout_s=_LOCK_S):
        owner = shared.owner()
        if owner is None or owner.instance_id != context.instance_id:
            raise StepError(
                expected=f"{context.instance_id} has the state of the cluster",
                seen=f"the owner is {owner.instance_id if owner else 'unknown'}",
                action="none if this controller was replaced; otherwise run the step slurm_state again",
            )
        place = shared.place(ACCOUNTING, owner.number)
        stop("slurmdbd")
        stop("mariadb")
        try:
            adopt(data, place, owner=data_owner(context, data))
        finally:
            start_database()
            admit_slurm(context)
            start("slurmdbd")
    if not wait_until(lambda: accounting_is_up(context), timeout_s=_ANSWER_S):
        raise StepError(
            expected=f"slurmdbd answers after its data was moved to {place}",
            seen=f"it did not for {_ANSWER_S:g} s",
            action="read slurmdbd's log and 'journalctl -u mariadb -u slurmdbd' on this node",
        )
    return place
