"""
State that outlives a controller, on the shared file system: Slurm's state, accounting data, and their owner.

Below ``<fsx>/.holdfast/slurm/<cluster>``::

    lock            held while something is taken over or moved in
    owner.json      {"number": 3, "instance_id": "i-..."}: the controller that may use the rest
    state-3         StateSaveLocation of slurmctld
    accounting-3    data directory of MariaDB
    series          name of the series of job numbers of this state; jobs read it

The number is a fencing token. A take-over increments it and renames both directories, so every path of an earlier
controller is gone: slurmctld, which opens files by path, can save nothing, and neither daemon starts again there.
MariaDB keeps files open and locked, so its directory is renamed only when no process on any node has it open. See
docs/adr/0030.
"""

import contextlib
import errno
import fcntl
import json
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple, Optional

from holdfast_lifecycle.model import Context, StepError
from holdfast_lifecycle.node.files import write_whole
from holdfast_lifecycle.node.services import wait_until

SERIES = "series"
STATE, ACCOUNTING = "state", "accounting"
_LOCKED_BY_MARIADB = ("aria_log_control", "ibdata1")
_FOLDERS = (".holdfast", "slurm")


class Owner(NamedTuple):
    number: int
    instance_id: str


def root_folder(folder: Path, *, mode: int) -> None:
    with contextlib.suppress(FileExistsError):
        folder.mkdir(mode=mode)
    state = folder.lstat()
    if not stat.S_ISDIR(state.st_mode) or state.st_uid != os.geteuid():
        kind = "a directory" if stat.S_ISDIR(state.st_mode) else "no directory"
        raise StepError(
            expected=f"{folder} is a directory of root",
            seen=f"it is {kind} of uid {state.st_uid}",
            action="find its owner, move it away, and run the lifecycle again",
        )
    folder.chmod(mode)


class SharedState:
    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @staticmethod
    def of(context: Context) -> "SharedState":
        top = context.path(context.fsx_mount_path).joinpath(*_FOLDERS)
        return SharedState(top / context.cluster_name)

    def prepare(self) -> None:
        """Make the directories, which root must own: everybody may write at the top of the file system."""
        for folder, mode in zip([*reversed(self.folder.parents[:2]), self.folder], (0o755, 0o755, 0o711)):
            root_folder(folder, mode=mode)

    @contextlib.contextmanager
    def locked(self, *, timeout_s: float) -> Iterator[None]:
        """Exclude take-overs and moves on all nodes."""
        with (self.folder / "lock").open("w") as lock:
            _check_locks_work(lock.fileno(), self.folder)
            if not wait_until(lambda: _try_lock(lock.fileno()), timeout_s=timeout_s):
                raise StepError(
                    expected=f"no other node takes over {self.folder}",
                    seen=f"its lock was held for {timeout_s:g} s",
                    action="find the other controller of this cluster that is being created, and delete it",
                )
            yield

    def owner(self) -> Optional[Owner]:
        try:
            found = json.loads((self.folder / "owner.json").read_text())
            return Owner(number=int(found["number"]), instance_id=str(found["instance_id"]))
        except (FileNotFoundError, NotADirectoryError):
            return None
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise StepError(
                expected=f"{self.folder}/owner.json names the owner of Slurm's state",
                seen=f"{type(error).__name__}: {error}",
                action="write a new one: an object with 'number', that of the directories beside it, and 'instance_id',"
                " that of the last controller",
            ) from error

    def take(self, instance_id: str) -> int:
        """Become the owner, under the lock; return the new number of the directories."""
        before = self.owner()
        if before is None or before.instance_id != instance_id:
            number = 1 + max([before.number if before else 0, *(_number(path) for path in self._all())])
            # Before the renaming: who is interrupted between the two finds itself the owner, and goes on.
            content = json.dumps({"number": number, "instance_id": instance_id}) + "\n"
            write_whole(self.folder / "owner.json", content.encode(), mode=0o600)
        else:
            number = before.number
        for kind in (STATE, ACCOUNTING):
            found = self.find(kind)
            if found is not None and found != self.place(kind, number):
                found.rename(self.place(kind, number))
        return number

    @property
    def series(self) -> Path:
        """New for each state that starts empty, since job numbers restart then."""
        return self.folder / SERIES

    def name_series(self, *, begins_empty: bool) -> None:
        """Under the lock. Continued numbers keep their name."""
        if begins_empty or not self.series.exists():
            write_whole(self.series, (os.urandom(8).hex() + "\n").encode(), mode=0o644)

    def place(self, kind: str, number: int) -> Path:
        return self.folder / f"{kind}-{number}"

    def find(self, kind: str) -> Optional[Path]:
        found = [path for path in self._all() if path.name.startswith(f"{kind}-")]
        return max(found, key=_number) if found else None

    def _all(self) -> list[Path]:
        return [path for path in self.folder.iterdir() if _number(path) > 0]


def _number(path: Path) -> int:
    kind, _, number = path.name.partition("-")
    return int(number) if kind in (STATE, ACCOUNTING) and number.isdigit() else 0


def is_open_elsewhere(data: Path) -> bool:
    """
    True if a MariaDB server on any node has this data directory open.

    InnoDB and Aria lock one file each while they run (MDEV-28495 for InnoDB's), and Lustre shows locks to all nodes
    when mounted with ``flock``. The lock of a stopped process stays; that of a lost node ends when Lustre evicts it.
    """
    for name in _LOCKED_BY_MARIADB:
        with contextlib.suppress(FileNotFoundError), (data / name).open("r+b") as file:
            try:
                fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                if error.errno not in (errno.EAGAIN, errno.EACCES):
                    raise
                return True
    return False


def _try_lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _check_locks_work(descriptor: int, folder: Path) -> None:
    """A mount without locks returns ENOSYS."""
    try:
        fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        fcntl.lockf(descriptor, fcntl.LOCK_UN)
    except OSError as error:
        if error.errno in (errno.EAGAIN, errno.EACCES):
            return
        raise StepError(
            expected=f"files in {folder} can be locked",
            seen=str(error),
            action="mount the file system with the option flock, as the FSx for Lustre guide does",
        ) from error
