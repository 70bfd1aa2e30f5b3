"""
Each rank's shard in the memory of another node, every few steps, so that a lost node costs a few steps and no storage.

Two blocks hold the shard of a rank, here and at its buddy. One of them always has the step that all ranks agreed on:
the newest that is whole at every rank and every buddy. A new snapshot goes into the other one. So whichever processes
are lost, unless a rank and its buddy go together, there is one step that is there for every rank, to the byte.
"""

import logging
import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from typing import Literal

import torch
import torch.distributed as dist

from holdfast_common.placement import Keepers, Spot, keepers
from holdfast_runtime.faults import Injector
from holdfast_runtime.membership import part_number
from holdfast_runtime.snapshots.copies import Copy
from holdfast_runtime.snapshots.keeper import Keeper, bring, fetch
from holdfast_runtime.snapshots.layout import Block, Label, SnapshotError
from holdfast_runtime.snapshots.shard import Shard
from holdfast_runtime.snapshots.wire import Link

_LOG = logging.getLogger(__name__)

Agree = Callable[[Sequence[int]], Sequence[int]]
"""The smallest of each number over all ranks: a collective that every rank calls with as many numbers."""


@dataclass(frozen=True)
class Place:
    """Location of a rank."""

    node: int
    """Of the same number: fails together."""
    host: str
    port: int
    """Of its ``Snapshots``."""
    rack: str = ""
    """Of its node. Default: not known"""
    held: tuple[tuple[int, int], ...] = ()
    """Rank and step of all shards in its memory as the generation begins. Default: none is known"""


@dataclass(frozen=True)
class _Generation:
    number: int
    rank: int
    places: tuple[Place, ...]
    map: Keepers
    shard: Shard
    agree: Agree
    cut: int

    @property
    def part(self) -> int:
        """Number of this rank's shard."""
        return part_number(self.rank, self.cut)

    @property
    def wards(self) -> tuple[int, ...]:
        """Shards that are kept here for others."""
        return tuple(part_number(rank, self.cut) for rank in self.map.wards(self.rank))

    @property
    def keeper(self) -> Place | None:
        """Keeper of this rank's shard."""
        rank = self.map.of[self.rank]
        return None if rank < 0 else self.places[rank]


class Snapshots:
    """
    The snapshots of one process. It outlives groups, models and generations.

    Args:
        host: address to listen at. Default: all
        settle_s: longest that an update waits for a copy. Default: 60
        transfer_s: longest that a shard may travel. Default: 300
        faults: On purpose. Default: none.
    """

    def __init__(
        self,
        *,
        host: str = "",
        settle_s: float = 60.0,
        transfer_s: float = 300.0,
        faults: Injector | None = None,
    ) -> None:
        self._settle_s = settle_s
        self._transfer_s = transfer_s
        self._token = os.environ.get("HOLDFAST_TOKEN", "")
        self._faults = faults or Injector()
        self._keeper = Keeper(host=host, deadline_s=transfer_s, token=self._token, faults=self._faults)
        self.port = self._keeper.port
        self.problem = ""
        """Why the newest snapshot is not safe yet; empty when nothing is known."""
        self._spent_s = 0.0
        self._changing = threading.Lock()
        self._generation: _Generation | None = None
        self._agreed = self._safe = -1
        self._copy: Copy | None = None
        self._worker: threading.Thread | None = None
        self._link: Link | None = None

    def held(self) -> list[tuple[int, int]]:
        """Rank and step of all shards in this process's memory; goes into the ``ready`` message."""
        return self._keeper.held()

    @property
    def spent_s(self) -> float:
        """CPU that snapshots have taken in this process: copies, checksums and what was kept for others. Seconds."""
        return self._spent_s + self._keeper.spent_s

    @property
    def memory_bytes(self) -> int:
        """Host memory that this process has for snapshots."""
        return self._keeper.memory_bytes

    @property
    def agreed_step(self) -> int:
        """The newest step that is known to be whole everywhere."""
        return self._agreed

    def join(
        self,
        shard: Shard,
        *,
        rank: int,
        places: Sequence[Place],
        generation: int,
        resume_step: int,
        agree: Agree,
        agreed_step: int | None = None,
        alike: Sequence[Sequence[int]] = (),
        cut: int = 0,
    ) -> None:
        """
        Begin a generation. Then ``restore`` where the state is missing, and ``take(resume_step)`` on all ranks.

        Args:
            shard: this rank's state from now on.
            rank: this rank.
            places: of all ranks, by rank.
            generation: of the view; transfers of another one are refused.
            resume_step: updates that count. Snapshots of later ones are forgotten.
            agreed_step: the newest step up to it that is whole somewhere for every rank; it is kept until a newer one
                is. Default: resume_step
            agree: usually ``agree_by(group)``.
            alike: ranks that have the same state. Where they are on several nodes nobody has to keep it for them.
                Default: no two are alike
            cut: ranks that the state is divided among, where that may change. Default: it never does
        """
        self.leave()
        chosen = keepers([Spot(place.node, place.rack) for place in places], alike=alike)
        self._generation = _Generation(generation, rank, tuple(places), chosen, shard, agree, cut)
        self._agreed = self._safe = resume_step if agreed_step is None else agreed_step
        self.problem = ""
        self._keeper.open(generation=generation, wards=self._generation.wards, resume_step=resume_step)

    def leave(self) -> None:
        """End the generation at once: transfers are broken off, what is whole stays."""
        with self._changing:
            generation, self._generation = self._generation, None
            link, self._link = self._link, None
        self._keeper.leave()
        if link is not None:
            link.close()
        if generation is not None:
            self._keeper.settle(generation.part, deadline_s=self._settle_s)
        self._copy = self._worker = None

    def close(self) -> None:
        """End for good; the memory is given back."""
        self.leave()
        self._keeper.close()

    def before_update(self) -> None:
        """Call it before each update: waits until the state that the update will change has been copied."""
        if self._copy is not None:
            self._copy.settle(deadline_s=self._settle_s)

    def take(self, step: int) -> bool:
        """
        Begin a snapshot of the state after ``step`` updates. A collective: all ranks call it at the same step.

        A shard of that step which is here already, as after going back to it, is only brought to who does not have it.

        Returns:
            False, on all ranks, when any of them is still busy with the one before.
        """
        generation = self._joined()
        idle = self._worker is None or not self._worker.is_alive()
        agreed, all_idle = generation.agree((self._safe, int(idle)))
        if not all_idle:
            return False
        if agreed > self._agreed:
            self._agreed = agreed
            self._keeper.forget_others((generation.part, *generation.wards))
        self._safe = self._agreed  # the other block, whatever it has, is written over from here on
        there = self._keeper.find(generation.part, step)
        if there is not None and there.label is not None:
            self._copy = None
            if generation.keeper is None or (generation.part, step) in generation.keeper.held:
                self._safe = step
            else:
                self._begin(self._secure_again, generation, there, there.label, self._agreed)
            return True
        with ExitStack() as stack:
            block = stack.enter_context(self._keeper.writing(generation.part, keep=self._agreed))
            shard = generation.shard
            extra, tensors = shard.pack()
            moving = {**shard.weights(), **shard.buffers(), **tensors}
            self._copy = Copy(block, steady=shard.steady(), moving=moving)
            self._begin(self._secure, generation, self._copy, block, step, self._agreed, extra, stack.pop_all())
        return True

    def _begin(self, work: Callable[..., None], *arguments: object) -> None:
        self._worker = threading.Thread(target=work, args=arguments, name="snapshot", daemon=True)
        self._worker.start()

    def wait(self) -> str:
        """Wait until the snapshot that was begun is safe; why it is not, or nothing. Raises SnapshotError."""
        if self._worker is not None:
            self._worker.join(self._transfer_s)
            if self._worker.is_alive():
                raise SnapshotError(f"the snapshot was not safe within {self._transfer_s} s")
        return self.problem

    def restore(self, step: int, donors: Sequence[int] = ()) -> Literal["memory", "buddy"]:
        """
        Put the state of a step into the shard, from this process's memory or else from a donor's.

        Args:
            step: the step that the view resumes at.
            donors: ranks that have this rank's shard, the best first.

        Raises:
            SnapshotError: nobody can give it whole; the text says who was asked and what was wrong.
        """
        generation = self._joined()
        block = self.find(generation.part, step)
        if block is not None:
            generation.shard.load(block)
            return "memory"
        refusals = []
        for donor in donors:
            block, refusal = self._fetched(generation, donor, step)
            if block is not None:
                generation.shard.load(block)
                return "buddy"
            refusals.append(f"rank {donor}: {refusal}")
        asked = "; ".join(refusals) or "no rank has it"
        raise SnapshotError(f"rank {generation.rank}'s shard of step {step} is lost: {asked}")

    def find(self, part: int, step: int) -> Block | None:
        """A shard in this process's memory that is whole; None where there is none."""
        block = self._keeper.find(part, step)
        whole = block is not None and block.label is not None and block.checksums() == block.label.checksums
        return block if whole else None

    def _joined(self) -> _Generation:
        if self._generation is None:
            raise SnapshotError("snapshots need join() first: keepers are assigned with each generation")
        return self._generation

    def _fetched(self, generation: _Generation, donor: int, step: int) -> tuple[Block | None, str]:
        place = generation.places[donor]
        try:
            with (
                closing(Link.connect(place.host, place.port, deadline_s=self._transfer_s)) as link,
                self._keeper.writing(generation.part, keep=step) as block,
            ):
                self._faults.point("fetch", step=step)
                label = fetch(
                    block, link, generation=generation.number, rank=generation.part, step=step, token=self._token
                )
                self._keeper.publish(block, label, generation=generation.number)
                return block, ""
        except (SnapshotError, OSError) as error:
            _LOG.warning("rank %d cannot give the shard of step %d: %s", donor, step, error)
            return None, str(error)

    def _secure(
        self, generation: _Generation, copy: Copy, block: Block, step: int, keep: int, extra: bytes, writing: ExitStack
    ) -> None:
        with self._securing(generation, step):
            with writing:
                self._faults.point("snapshot", step=step)
                copy.run()
                label = Label(generation.part, step, copy.layout, block.checksums(), extra).sealed()
                self._keeper.publish(block, label, generation=generation.number)
            if generation.keeper is not None:
                self._bring(generation, block, label, keep)

    def _secure_again(self, generation: _Generation, block: Block, label: Label, keep: int) -> None:
        with self._securing(generation, label.step):
            self._bring(generation, block, label, keep)

    @contextmanager
    def _securing(self, generation: _Generation, step: int) -> Iterator[None]:
        started, before_s = time.monotonic(), time.thread_time()
        try:
            yield
        except (SnapshotError, OSError, RuntimeError) as error:
            problem, safe = f"the snapshot of step {step} is not safe: {error}", -1
            _LOG.warning("%s", problem)
        else:
            problem, safe = "", step
            _LOG.info("the snapshot of step %d is safe after %.3f s", step, time.monotonic() - started)
        with self._changing:
            self._spent_s += time.thread_time() - before_s
            if self._generation is generation:
                self._safe, self.problem = max(self._safe, safe), problem

    def _bring(self, generation: _Generation, block: Block, label: Label, keep: int) -> None:
        place = generation.keeper
        assert place is not None
        link = Link.connect(place.host, place.port, deadline_s=self._transfer_s)
        try:
            with self._changing:
                if self._generation is not generation:
                    raise SnapshotError(f"generation {generation.number} ended")
                self._link = link
            self._faults.point("bring", step=label.step)
            bring(block, label, link, generation=generation.number, keep=keep, token=self._token)
        finally:
            with self._changing:
                if self._link is link:
                    self._link = None
            link.close()


def agree_by(group: dist.ProcessGroup | None = None) -> Agree:
    """Agree by one all-reduce of a group on the CPU. Default: the default group"""

    def agree(numbers: Sequence[int]) -> Sequence[int]:
        tensor = torch.tensor(numbers, dtype=torch.int64)
        dist.all_reduce(tensor, op=dist.ReduceOp.MIN, group=group)
        return [int(number) for number in tensor]

    return agree
