"""
Snapshots of a sharded job: state, keepers, and interval.

By default they are taken only if some part of the state is in one place, and as often as a share of CPU allows.
"""

import contextlib
import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch

from holdfast_common.placement import BLOCKS, needs_snapshots
from holdfast_runtime.faults import Injector
from holdfast_runtime.groups import UnsupportedError
from holdfast_runtime.sharded.meeting import Facts, agreed_snapshot, alike
from holdfast_runtime.snapshots import Agree, Place, Shard, SnapshotError, Snapshots

SHARE = 0.03
"""Of the time of the steps that snapshots may take as CPU."""
FIRST = 2
"""Updates to the second snapshot, whose cost is the first that is known: before an update there are no moments."""
MOST = 1000
MOMENTS = 2
"""Tensors of a parameter's size that an optimizer keeps, until it is known."""


@dataclass(frozen=True)
class RankPlace:
    """Rank in a generation."""

    rank: int
    generation: int
    resume_step: int
    cut: int = 0
    """Ranks that the state is divided among, where that may change. Default: it never does"""


class JobSnapshots:
    """
    Snapshots as a run has them.

    Args:
        shard: The state of this rank, asked for when a generation begins.
        every: Updates from one to the next. 0: as many as their cost asks for, and none where all is in two places.
        transfer_s: Longest that one may travel.
        faults: On purpose. Default: none.
    """

    def __init__(
        self,
        shard: Callable[[], Shard],
        *,
        every: int,
        transfer_s: float,
        faults: Injector | None = None,
    ) -> None:
        self.every = every
        self.needed = True
        """Whether snapshots are taken."""
        self._shard = shard
        self._snapshots = Snapshots(transfer_s=transfer_s, faults=faults)
        self._agree: Agree = lambda numbers: numbers
        self._pace = SnapshotPace(every=every)

    @property
    def port(self) -> int:
        return self._snapshots.port

    def held(self) -> list[tuple[int, int]]:
        return self._snapshots.held()

    def join(self, facts: Sequence[Facts], place: RankPlace, *, agree: Agree) -> None:
        """Begin a generation. Raises UnsupportedError where the memory of the host does not suffice."""
        self.needed = bool(self.every) or in_one_place(facts)
        shard = self._shard()
        node = facts[place.rank].node
        new = sum(fact.node == node and not fact.held for fact in facts)  # the others have their memory
        if self.needed and new:
            check_memory(shard, ranks=new, held=self._snapshots.memory_bytes)
        self._agree = agree
        self._snapshots.join(
            shard,
            rank=place.rank,
            places=[Place(fact.node, fact.host, fact.keeper, fact.rack, fact.held) for fact in facts],
            generation=place.generation,
            resume_step=place.resume_step,
            agreed_step=agreed_snapshot(facts, until=place.resume_step, cut=place.cut),
            agree=agree,
            alike=alike(facts),
            cut=place.cut,
        )

    def leave(self) -> None:
        self._snapshots.leave()

    def restore(self, step: int, donors: Sequence[int]) -> None:
        """Have the state of a step, from here or from a keeper. Raises ConnectionError when nobody gives it whole."""
        try:
            self._snapshots.restore(step, donors)
        except SnapshotError as error:
            raise ConnectionError(str(error)) from error

    def find(self, part: int, step: int) -> tuple[dict[str, torch.Tensor], bytes] | None:
        """A part of the state in this process's memory, and what of it is no tensor; None where it is not here."""
        block = self._snapshots.find(part, step)
        if block is None or block.label is None:
            return None
        return {entry.name: entry.of(block.data) for entry in block.label.layout.entries}, block.label.extra

    def take(self, step: int) -> None:
        """Begin the first snapshot of a generation, on all ranks at the same step, where any are taken."""
        if self.needed:
            every = -self._agree((-self._pace.every,))[0]
            self._snapshots.take(step)
            self._pace.begun(step, at_s=time.monotonic(), spent_s=self._snapshots.spent_s, every=every)

    def take_safe(self, step: int) -> None:
        """As ``take``, and wait until the snapshots of all ranks are safe, or cannot be."""
        if not self.needed:
            return
        with contextlib.suppress(SnapshotError):
            self._snapshots.wait()
        self.take(step)
        with contextlib.suppress(SnapshotError):
            self._snapshots.wait()
        self._agree((0,))

    def before_update(self) -> None:
        self._snapshots.before_update()

    def after_step(self, step: int) -> None:
        if not self.needed or not self._pace.is_due(step):
            return
        updates = self._pace.updates_to_next(step, at_s=time.monotonic(), spent_s=self._snapshots.spent_s)
        slowest = -self._agree((-updates,))[0]
        if self._snapshots.take(step):
            self._pace.begun(step, at_s=time.monotonic(), spent_s=self._snapshots.spent_s, every=slowest)


class SnapshotPace:
    """
    Updates between two snapshots.

    Args:
        every: Updates from one to the next; 0 to find it by cost.
    """

    def __init__(self, *, every: int) -> None:
        self.every = every or FIRST
        self._fixed = bool(every)
        self._step = self._taken = 0
        self._at_s = self._spent_s = 0.0

    def is_due(self, step: int) -> bool:
        return step % self.every == 0 if self._fixed else step >= self._step + self.every

    def updates_to_next(self, step: int, *, at_s: float, spent_s: float) -> int:
        """Updates to the next but one, by what those since the last one cost: CPU seconds and the steps' own time."""
        if self._fixed or step <= self._step:
            return self.every
        step_s = max(at_s - self._at_s, 1e-6) / (step - self._step)
        return min(MOST, max(1, math.ceil((spent_s - self._spent_s) / (SHARE * step_s))))

    def begun(self, step: int, *, at_s: float, spent_s: float, every: int = 0) -> None:
        """One was begun; ``every`` updates to the next. Default: as before"""
        self._step, self._at_s, self._spent_s = step, at_s, spent_s
        self.every = every or self.every


def in_one_place(facts: Sequence[Facts]) -> bool:
    return needs_snapshots([fact.spot for fact in facts], alike=alike(facts))


def check_memory(shard: Shard, *, ranks: int, held: int = 0, available: int | None = None) -> None:
    """
    Raise UnsupportedError where the host cannot hold the snapshots of so many ranks.

    Args:
        held: What each of them has for snapshots already, in bytes. Default: nothing
    """
    needed, there = BLOCKS * _state_bytes(shard) * ranks, available_bytes() if available is None else available
    if needed - held * ranks > there:
        raise UnsupportedError(
            f"snapshots need about {needed / 1e9:.1f} GB of host memory on a node of {ranks} ranks ({BLOCKS} times the "
            f"state of each), and {(there + held * ranks) / 1e9:.1f} GB are free for them; divide the model among more "
            'ranks, or say snapshot_every="never", and a lost rank costs the way back to the last checkpoint'
        )


def _state_bytes(shard: Shard) -> int:
    weights = sum(tensor.nbytes for tensor in shard.weights().values())
    others = sum(tensor.nbytes for tensor in (*shard.buffers().values(), *shard.pack()[1].values()))
    return weights * (1 + MOMENTS) + others


def available_bytes(*, proc: Path = Path("/proc/meminfo"), limit: Path = Path("/sys/fs/cgroup")) -> int:
    lines: Mapping[str, str] = dict(line.split(":", 1) for line in proc.read_text().splitlines() if ":" in line)
    free = int(lines["MemAvailable"].split()[0]) * 1024
    try:
        most, now = (limit / "memory.max").read_text().strip(), (limit / "memory.current").read_text()
    except OSError:
        return free
    return free if most == "max" else min(free, int(most) - int(now))
