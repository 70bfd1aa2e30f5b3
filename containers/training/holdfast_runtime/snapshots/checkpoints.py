"""
Sharded checkpoints in storage, written by torch.distributed.checkpoint while the training goes on.

One counts once every rank has written its part, every file has a digest and COMPLETE exists.
"""

import io
import logging
import shutil
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch.distributed.checkpoint.api import CheckpointException
from torch.distributed.checkpoint.filesystem import FileSystemReader, FileSystemWriter
from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict
from torch.distributed.checkpoint.state_dict_loader import load
from torch.distributed.checkpoint.state_dict_saver import async_save

from holdfast_runtime.snapshots.layout import SnapshotError, claim_for_training
from holdfast_runtime.snapshots.manifest import (
    FileFacts,
    Manifest,
    clear_incomplete,
    complete,
    complete_steps,
    damage,
    facts,
    keep_newest,
    newest_complete,
    read_manifest,
    step_folder,
)
from holdfast_runtime.snapshots.memory import Agree
from holdfast_runtime.snapshots.shard import Shard

_LOG = logging.getLogger(__name__)
_METADATA = ".metadata"


@dataclass(frozen=True)
class Outcome:
    """Outcome of a checkpoint; the same on all ranks."""

    step: int
    problem: str
    """Why it was not written; empty when it is complete."""
    duration_s: float
    """From the beginning to the end, beside the training."""


class Checkpoints:
    """
    The checkpoints of a job.

    Args:
        folder: in storage that all ranks share.
        keep: how many complete ones stay. Default: 3
        deadline_s: for one to be written or read. Default: 1800
    """

    def __init__(self, folder: str | Path, *, keep: int = 3, deadline_s: float = 1800.0) -> None:
        if keep < 1:
            raise ValueError(f"at least 1 checkpoint has to be kept, got {keep}")
        self.folder = Path(folder)
        self.outcome: Outcome | None = None
        """Of the newest checkpoint that has ended."""
        self._keep = keep
        self._deadline_s = deadline_s
        self._worker: threading.Thread | None = None

    def newest_step(self) -> int:
        """Of the complete checkpoints; -1 without one. Asks the folder only, so a spare may call it too."""
        return newest_complete(self.folder)

    def join(self, shard: Shard, *, group: dist.ProcessGroup, agree: Agree) -> None:
        """
        Begin a generation. A collective. Removes what earlier jobs and generations left half-written; a folder of
        another submission is refused with a SnapshotError.

        Args:
            shard: this rank's state.
            group: gloo, over all ranks, used for nothing else: it works while the training goes on.
            agree: over all ranks, by another group.
        """
        self._shard, self._group, self._agree = shard, group, agree
        self._rank, self._size = dist.get_rank(group), dist.get_world_size(group)
        self._worker = None
        self._together(self._prepare)

    def leave(self) -> None:
        """End a generation: nothing here holds the group any more, but a checkpoint that is being written."""
        self._group = self._agree = None  # type: ignore[assignment]

    def save(self, step: int) -> bool:
        """
        Begin to write the state after ``step`` updates. A collective; returns once the state has been copied.

        Returns:
            False, on all ranks, when any is still busy with the one before, or has that step already.
        """
        idle = self._worker is None or not self._worker.is_alive()
        new = step > self.newest_step() if self._rank == 0 else True
        if not self._agree((int(idle and new),))[0]:
            return False
        started = time.monotonic()
        path = step_folder(self.folder, step)
        future = async_save(
            self._state(step),
            storage_writer=FileSystemWriter(path),
            process_group=self._group,
        )
        work = (step, future, started)
        self._worker = threading.Thread(target=self._finish, args=work, name="checkpoint", daemon=True)
        self._worker.start()
        return True

    def wait(self) -> Outcome | None:
        """Wait for the checkpoint that is being written. Raises SnapshotError at the deadline."""
        if self._worker is not None:
            self._worker.join(self._deadline_s)
            if self._worker.is_alive():
                raise SnapshotError(f"the checkpoint was not written within {self._deadline_s} s")
        return self.outcome

    def load(self, step: int | None = None) -> int:
        """
        Read a checkpoint into the shard, after its files have been compared with their digests. A collective.

        Args:
            step: which. Default: the newest complete one

        Returns:
            Its step.

        Raises:
            SnapshotError: on all ranks, when it is not there or damaged. Which older one to use instead is not decided
                here, because that loses steps.
        """
        chosen = self._from_first(lambda: self.newest_step() if step is None else step)
        manifest: Manifest = self._from_first(lambda: read_manifest(self.folder, chosen))
        names = sorted(manifest.files)
        parts = self._gathered(lambda: damage(self.folder, manifest, names[self._rank :: self._size]))
        if problems := [problem for part in parts for problem in part]:
            others = ", ".join(str(item) for item in complete_steps(self.folder) if item != chosen) or "none"
            raise SnapshotError(
                f"the checkpoint of step {chosen} in {self.folder} is damaged: {'; '.join(problems)}; "
                f"other complete ones: {others}"
            )
        self._read(chosen, same_size=manifest.world_size == self._size)
        return int(chosen)

    def _state(self, step: int) -> dict[str, Any]:
        """
        State to write. Of buffers torch.distributed.checkpoint keeps one rank's for all, as if they were replicas;
        running statistics are not, so each rank's are written too.
        """
        model, optimizer = get_state_dict(self._shard.model, self._shard.optimizer)
        packed = io.BytesIO()
        torch.save(self._shard.pack(), packed)
        extra = torch.frombuffer(bytearray(packed.getvalue()), dtype=torch.uint8)
        mine = {"extra": extra, "buffers": self._shard.buffers(persistent=True)}
        return {"model": model, "optimizer": optimizer, "step": step, f"rank {self._rank}": mine}

    def _read(self, step: int, *, same_size: bool) -> None:
        """With another number of ranks the shards are cut anew, and all go on with the first one's other state."""
        reader = FileSystemReader(step_folder(self.folder, step))
        model, optimizer = get_state_dict(self._shard.model, self._shard.optimizer)
        whose = f"rank {self._rank if same_size else 0}"
        size = reader.read_metadata().state_dict_metadata[f"{whose}.extra"].size  # type: ignore[union-attr]
        extra = torch.empty(size, dtype=torch.uint8)
        buffers = {name: torch.empty_like(tensor) for name, tensor in self._shard.buffers(persistent=True).items()}
        state: dict[str, Any] = {"model": model, "optimizer": optimizer, "step": 0}
        state[whose] = {"extra": extra, "buffers": buffers}
        load(state, storage_reader=reader, process_group=self._group)
        if state["step"] != step:
            raise SnapshotError(f"checkpoint of step {step}: its content is of step {state['step']}")
        set_state_dict(
            self._shard.model, self._shard.optimizer, model_state_dict=model, optim_state_dict=state["optimizer"]
        )
        for name, tensor in self._shard.buffers(persistent=True).items():
            tensor.copy_(buffers[name])
        self._shard.load_extra(*torch.load(io.BytesIO(extra.numpy().tobytes()), weights_only=True))

    def _prepare(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        claim_for_training(self.folder)
        if left := clear_incomplete(self.folder):
            _LOG.warning("removed incomplete checkpoints of steps %s in %s", left, self.folder)

    def _finish(self, step: int, future: Any, started: float) -> None:
        """In a thread of its own: wait until all have written, digests, COMPLETE, retention."""
        try:
            try:
                future.result(self._deadline_s)
                self._seal(step)
                problem = ""
            except (SnapshotError, CheckpointException, OSError, RuntimeError) as error:
                problem = self._failed(step, error)
        except BaseException as error:
            problem = f"the checkpoint of step {step} was not written: {error!r}"
            raise
        finally:
            self.outcome = Outcome(step, problem, time.monotonic() - started)
            _LOG.log(
                logging.WARNING if problem else logging.INFO, "%s", problem or f"checkpoint of step {step} is complete"
            )

    def _seal(self, step: int) -> None:
        path = step_folder(self.folder, step)
        parts = self._gathered(lambda: {name.name: facts(name) for name in self._written(path)})
        files: Mapping[str, FileFacts] = {name: found for part in parts for name, found in part.items()}
        self._together(lambda: self._complete(Manifest(step, self._size, files)))

    def _written(self, path: Path) -> list[Path]:
        files = sorted(path.glob(f"__{self._rank}_*"))
        return [*files, path / _METADATA] if self._rank == 0 else files

    def _complete(self, manifest: Manifest) -> None:
        complete(self.folder, manifest)
        keep_newest(self.folder, self._keep)

    def _failed(self, step: int, error: BaseException) -> str:
        free = shutil.disk_usage(self.folder).free
        if self._rank == 0:
            shutil.rmtree(step_folder(self.folder, step), ignore_errors=True)
        newest = self.newest_step()
        others = f"the newest complete one is of step {newest}" if newest >= 0 else "there is none yet"
        what = f"the checkpoint of step {step} was not written to {self.folder}"
        return f"{what}: {_cause(error)} ({free:,} bytes were free); training goes on, and {others}"

    def _gathered(self, work: Callable[[], Any]) -> list[Any]:
        mine: tuple[Any, str] = (None, "")
        try:
            mine = (work(), "")
        except (OSError, SnapshotError) as error:
            mine = (None, f"rank {self._rank}: {error}")
        every: list[Any] = [None] * self._size
        dist.all_gather_object(every, mine, group=self._group)
        if problems := [problem for _, problem in every if problem]:
            raise SnapshotError("; ".join(problems))
        return [found for found, _ in every]

    def _from_first(self, work: Callable[[], Any]) -> Any:
        return self._gathered(lambda: work() if self._rank == 0 else None)[0]

    def _together(self, work: Callable[[], None]) -> None:
        self._from_first(work)


def _cause(error: BaseException) -> str:
    failures = getattr(error, "failures", None)
    if not failures:
        return str(error) or repr(error)
    rank, (inner, _) = min(failures.items())
    first = (str(inner) or repr(inner)).splitlines()[0]
    return f"rank {rank}: {first}"
