"""
Checkpoints of a job whose ranks all have the same state: the first rank writes, and no rank asks another.

It is what ``Run(checkpoint=...)`` takes. The same folders, manifest and COMPLETE as sharded checkpoints have; inside is
one file, because there is one state.
"""

import logging
import os
import pickle
import shutil
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from holdfast_runtime.snapshots.checkpoints import Outcome
from holdfast_runtime.snapshots.layout import SnapshotError, claim_for_training
from holdfast_runtime.snapshots.manifest import (
    Manifest,
    clear_incomplete,
    complete,
    complete_steps,
    facts,
    keep_newest,
    newest_complete,
    step_folder,
    verify,
)

_LOG = logging.getLogger(__name__)
_STATE, _ARRAY = "state.pt", "holdfast array"


class ReplicaCheckpoints:
    """
    Checkpoints of one state, written while the training goes on.

    When storage is slower than they come, the newest waits and those between are left out. A process that ends as a
    program should waits for the last one.

    Args:
        folder: in storage that all ranks share.
        keep: how many complete ones stay. Default: 3
        deadline_s: for ``wait``. Default: 1800
        read_only: to look at checkpoints of whatever submission, and write none. Default: the folder is this one's
    """

    def __init__(
        self, folder: str | Path, *, keep: int = 3, deadline_s: float = 1800.0, read_only: bool = False
    ) -> None:
        if keep < 1:
            raise ValueError(f"at least 1 checkpoint has to be kept, got {keep}")
        self.folder = Path(folder)
        self.outcome: Outcome | None = None
        """Of the newest checkpoint of this process that has ended."""
        self._keep = keep
        self._deadline_s = deadline_s
        self._lock = threading.Lock()
        self._asked = -1
        self._next: tuple[int, dict[str, Any], int] | None = None
        self._worker: threading.Thread | None = None
        self._cleared = False
        self._read_only = self._claimed = read_only

    def newest_step(self) -> int:
        """Of the complete checkpoints; -1 without one. Raises SnapshotError where they are another submission's."""
        self._claim()
        return newest_complete(self.folder)

    def _claim(self) -> None:
        if not self._claimed:
            claim_for_training(self.folder)
            self._claimed = True

    def save(self, step: int, tree: dict[str, Any], *, rank: int, world_size: int) -> None:
        """Begin to save; returns once the state is copied. Ranks other than the first do nothing."""
        if self._read_only:
            raise SnapshotError(f"{self.folder} was opened read only: nothing is saved there")
        if rank != 0 or step == self._asked or step in complete_steps(self.folder):
            return
        copy = _copied(tree)
        with self._lock:
            self._asked = step
            self._next = (step, copy, world_size)
            if self._worker is None:
                self._worker = threading.Thread(target=self._write_all, name="checkpoint")
                self._worker.start()

    def load(self, step: int, *, rank: int) -> dict[str, Any]:  # noqa: ARG002
        """
        The state of a checkpoint, compared with its digest; the same for all ranks.

        Raises:
            ValueError: it is not there, not complete or damaged.
        """
        try:
            self._claim()
            verify(self.folder, step)
        except SnapshotError as error:
            raise ValueError(str(error)) from error
        path = step_folder(self.folder, step) / _STATE
        tree: dict[str, Any] = _read(torch.load(path, map_location="cpu", weights_only=True))
        return tree

    def wait(self) -> Outcome | None:
        """Wait until nothing is left to write. Raises SnapshotError at the deadline."""
        worker = self._worker
        if worker is not None:
            worker.join(self._deadline_s)
            if worker.is_alive():
                raise SnapshotError(f"the checkpoint was not written within {self._deadline_s} s")
        return self.outcome

    def _write_all(self) -> None:
        while True:
            with self._lock:
                work, self._next = self._next, None
                if work is None:
                    self._worker = None
                    return
            step, tree, world_size = work
            started = time.monotonic()
            try:
                self._write(step, tree, world_size)
                problem = ""
            except (OSError, RuntimeError, ValueError, TypeError, AttributeError, pickle.PickleError) as error:
                problem = self._failed(step, error)
                _LOG.warning("%s", problem)
            self.outcome = Outcome(step, problem, time.monotonic() - started)

    def _write(self, step: int, tree: dict[str, Any], world_size: int) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        self._claim()
        if not self._cleared:
            clear_incomplete(self.folder)
            self._cleared = True
        path = step_folder(self.folder, step)
        path.mkdir()
        torch.save(tree, path / _STATE)
        torch.load(path / _STATE, mmap=True, map_location="cpu", weights_only=True)  # what cannot be read is none
        with (path / _STATE).open("rb+") as file:
            os.fsync(file.fileno())
        complete(self.folder, Manifest(step=step, world_size=world_size, files={_STATE: facts(path / _STATE)}))
        keep_newest(self.folder, self._keep)

    def _failed(self, step: int, error: Exception) -> str:
        free = shutil.disk_usage(self.folder).free if self.folder.is_dir() else 0
        shutil.rmtree(step_folder(self.folder, step), ignore_errors=True)
        newest = self.newest_step()
        others = f"the newest complete one is of step {newest}" if newest >= 0 else "there is none yet"
        cause = (str(error) or repr(error)).splitlines()[0]
        what = f"the checkpoint of step {step} was not written to {self.folder}"
        return f"{what}: {cause} ({free:,} bytes were free); training goes on, and {others}"


def _copied(value: Any) -> Any:
    """Return a copy of a tree that torch reads with ``weights_only``, so its arrays are marked tensors."""
    if isinstance(value, Tensor):
        return value.detach().to("cpu", copy=True)
    if isinstance(value, np.ndarray):
        return (_ARRAY, torch.from_numpy(value.copy()))
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, dict):
        return {key: _copied(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(_copied(item) for item in value)
    return value


def _read(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _read(item) for key, item in value.items()}
    if isinstance(value, tuple) and len(value) == 2 and value[0] == _ARRAY:
        return value[1].numpy()
    if isinstance(value, (list, tuple)):
        return type(value)(_read(item) for item in value)
    return value
