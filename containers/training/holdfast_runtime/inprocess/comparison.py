"""
Comparison of all that must be equal on ranks besides parameters, and values of single ranks.

The vote has a digest of the facts of each rank; if digests differ, ranks exchange the facts. In a job that has lost no
rank, a difference is intended: such values are gathered with each vote for a process that takes over. After a recovery
a difference ends the job, with its name and values.
"""

import json
import logging
import re
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np
import torch
import torch.distributed as dist
from torch import Tensor

from holdfast_runtime.inprocess.digest import digest_of
from holdfast_runtime.inprocess.errors import DivergenceError
from holdfast_runtime.inprocess.member import Member, Standing
from holdfast_runtime.inprocess.reduction import vote
from holdfast_runtime.inprocess.state import TrainingState
from holdfast_runtime.inprocess.tensors import MOST_BYTES, packed_values
from holdfast_runtime.sharded import Sharded, gathered, gathered_bytes
from holdfast_runtime.state import Path, named, shown
from holdfast_runtime.transfer import local

VOTES = 3
"""First votes of a generation that compare all facts: code around a step shows its effect in the next one."""
Wait = Callable[[Any], object]


_LOG = logging.getLogger(__name__)
LARGE_VALUES = (
    f"ranks with the same part of the model have more than {MOST_BYTES >> 20} MiB a rank that others have not, in "
    "buffers or in state=: a rank that is lost ends the job; make them equal on all ranks, or of a sharded model shard "
    "over all ranks, with Run(snapshot_every=...)"
)

BETWEEN = (
    ": a process that took over a rank ran the code between two loops with variables as at its start; give what this "
    "code reads to Run(state=...)"
)


class Comparison:
    """
    Of one process.

    Args:
        every: Updates between two comparisons of all facts. In between, ``state=``, attributes and extra state of
            modules are compared: values may begin to differ by rank in any step.
        sharded: Ranks that must be equal are those with the same part of the model. Default: all ranks
        wait: For a collective to end; raises when a rank is lost.
    """

    def __init__(self, state: TrainingState, *, every: int, sharded: Sharded | None, wait: Wait) -> None:
        self._state = state
        self._every = every
        self._sharded = sharded
        self._wait = wait
        self._alike = sharded is None or not sharded.has_stages
        """Whether all ranks have the same modules. Those of a pipeline have not."""
        self._generation = self._votes = 0
        self._begins_loop = self._is_of_loop = False
        """Of the next vote, and of the newest one: True for the first of a loop."""
        self._has_large_values = False
        """True if some rank has more of its own than others hold for it."""
        self._has_buffers = False
        """Whether the model has some on each rank, as the generation began."""

    def is_whole(self, *, generation: int, step: int) -> bool:
        """Return True if the vote of a step compares all facts and the parameters; the same on all ranks."""
        if generation != self._generation:
            self._generation, self._votes = generation, 0
            self._has_buffers = bool(self._state.buffers()) or not self._alike
        self._is_of_loop, self._begins_loop = self._begins_loop, False
        return self._is_of_loop or self._votes < VOTES or step % self._every == 0

    def begin_loop(self) -> None:
        """Compare all facts in the next vote: a newcomer runs the code between two loops with variables of its own."""
        self._begins_loop = True

    def facts(self, *, whole: bool) -> dict[Path, Any]:
        model: Literal["", "attributes", "all"] = "" if not self._alike else "all" if whole else "attributes"
        return self._state.facts(whole=whole, model=model, added=self._sharded is None)

    def judge_vote(self, outcome: vote.Outcome, facts: Mapping[Path, Any], *, member: Member) -> None:
        """
        See whether ranks are equal.

        Raises:
            BrokenError: a rank is missing.
            DivergenceError: ranks are not equal.
        """
        member.agreement.judge(replace(outcome, same_digest=True))
        if not outcome.same_buffers:
            raise DivergenceError(
                f"the model has other buffers at rank {member.own.rank} than at another rank: "
                f"{', '.join([*self._state.buffers()][:5]) or 'none'}; register them before Run, on all ranks"
            )
        if not outcome.same_facts:
            self._judge(facts, group=range(member.own.world_size), own=member.own)
        if not outcome.same_digest:
            cause = BETWEEN if self._is_of_loop and member.own.recovered else ""
            raise DivergenceError(f"{self._different_parameter()}, at step {member.own.committed_step}{cause}")
        self._votes += 1

    def compare_now(self, member: Member) -> None:
        """Compare all that must be equal, as it is now. A collective of all ranks."""
        self._is_of_loop = False
        facts = self.facts(whole=True)
        tail = torch.zeros(vote.LENGTH, dtype=torch.float32, device=member.peers.device)
        digest = self._state.digest() if self._sharded is None else 0
        vote.cast(tail, step=member.own.committed_step, digest=digest, loss=0.0, facts=digest_of_facts(facts))
        self._wait(dist.all_reduce(tail, async_op=True))
        self.judge_vote(vote.count(tail, world_size=member.own.world_size), facts, member=member)
        self.compare_twins(member)

    def compare_twins(self, member: Member) -> None:
        """Compare ranks with the same part of a model: parameters, ``state=``, buffers. A collective of all ranks."""
        sharded, own = self._sharded, member.own
        if sharded is None:
            return

        group = sorted({own.rank, *sharded.twins})

        def differs(digests: Sequence[int]) -> bool:
            odd = any(digests[twin] != digests[own.rank] for twin in group)
            return any(gathered(int(odd), world_size=own.world_size, wait=self._wait))

        parameters = gathered(self._state.digest(), world_size=own.world_size, wait=self._wait)
        if differs(parameters):
            # What made them different has a name, if it is not the parameters alone.
            self._judge(
                self._state.facts(whole=True, model="all" if self._alike else "", added=True), group=group, own=own
            )
            member.agreement.compare(parameters, twins=sharded.twins)
        facts = {**self._state.facts(whole=True, model="", added=True), **self._state.shared_buffers()}
        if differs(gathered(digest_of_facts(facts), world_size=own.world_size, wait=self._wait)):
            self._judge(facts, group=group, own=own)

    def _judge(self, facts: Mapping[Path, Any], *, group: Sequence[int], own: Standing) -> None:
        """
        Ranks have other facts: name them, or remember that they are of a rank each. A collective of all ranks.

        Raises:
            DivergenceError: a difference that a recovery has made.
        """
        mine = {
            "left": self._state.left_last,
            "facts": {named(path): _shown(value) for path, value in facts.items()},
            "by rank": sorted(self._state.by_rank),
        }
        others = [json.loads(data) for data in gathered_bytes(json.dumps(mine).encode(), wait=self._wait)]
        self._state.by_rank |= {name for each in others for name in each["by rank"]}
        every = [others[each]["facts"] for each in group]
        different = [
            name
            for name in dict.fromkeys(name for each in every for name in each)
            if name not in self._state.by_rank and any(each.get(name) != every[0].get(name) for each in every)
        ]
        lists = {_without_places(name) for name in self._state.by_rank}
        unknown = [name for name in different if _without_places(name) not in lists]
        if not own.committed_step:  # no vote of the first step has shown yet what differs by rank
            unknown = [name for name in unknown if not name.startswith("state.")]
        if unknown and own.recovered and (self._votes < VOTES or any(map(_must_agree, unknown))):
            name = unknown[0]
            here = others[own.rank]["facts"].get(name)
            other = next((each for each in group if others[each]["facts"].get(name) != here), group[0])
            left = max(each["left"] for each in others)
            cause = f"; the code around `with step:` ran again for step {left}, which was left" if left >= 0 else ""
            way = (
                "Give what it depends on to Run(state=...), and put code after `with step:` under `if step.done:`"
                if not name.startswith("objects.")
                else "An object of its kind cannot be sent to the process that takes over a rank: make it before Run"
            )
            raise DivergenceError(
                f"{name}: {_value(here)} at rank {own.rank}, {_value(others[other]['facts'].get(name))} at rank "
                f"{other}{cause}. {way}" + (f" ({len(unknown) - 1} more differ)" if len(unknown) > 1 else "")
            )
        self._state.by_rank |= {*different}
        self.gather(step=own.committed_step + 1)

    def _different_parameter(self) -> str:
        named_parameters = [(name, local(tensor)) for name, tensor in self._state.model.named_parameters()]
        mine = {name: [shown(tensor), digest_of([tensor])] for name, tensor in named_parameters}
        every = [json.loads(data) for data in gathered_bytes(json.dumps(mine).encode(), wait=self._wait)]
        for name in mine:
            for rank, theirs in enumerate(every):
                if theirs.get(name) != every[0].get(name):
                    one, other = (f"{each[name][0]}, digest {each[name][1]:08x}" for each in (every[0], theirs))
                    values = f"{name} is {one} at rank 0, and {other} at rank {rank}"
                    return f"the parameters of the ranks are different: {values}"
        return "the parameters of the ranks are different"

    def note_own_buffers(self, member: Member) -> None:
        """Learn which buffers some rank has changed in this step: twins have their own from now on. A collective."""
        if self._sharded is None or not self._sharded.some_have_twins or not self._has_buffers:
            return
        shared = {str(name) for _, name in self._state.shared_buffers()}
        changed = sorted(name for name, is_changed in self._state.changed_buffers() if is_changed and name in shared)
        if member.peers.smallest([-len(changed)])[0]:
            every = gathered_bytes(json.dumps(changed).encode(), wait=self._wait)
            self._state.note_own_buffers(name for each in every for name in json.loads(each))

    def gather(self, *, step: int) -> None:
        """Give all ranks the values that are of this rank alone, as they are after ``step`` updates. A collective."""
        if not self._state.by_rank:
            return
        found = gathered_bytes(packed_values(self._state.own_values()), wait=self._wait)
        if not (self._has_large_values or all(found)):
            self._has_large_values = True
            if self._sharded is not None:
                self._sharded.has_large_values = True
            if dist.get_rank() == 0:
                _LOG.warning("%s", LARGE_VALUES)
        self._state.keep_of_ranks(step, found)


def digest_of_facts(facts: Mapping[Path, Any]) -> int:
    """Return a digest of facts; 32 bits, and never 0."""
    text = "\n".join(f"{path!r} {_digest(value)}" for path, value in facts.items())
    return zlib.crc32(text.encode()) or 1


def _digest(value: Any) -> str:
    if isinstance(value, np.ndarray) and not value.dtype.hasobject:  # repr leaves out the middle of a large one
        return f"array {value.dtype} {value.shape} {zlib.crc32(value.tobytes())}"
    return f"tensor {digest_of([local(value)])}" if isinstance(value, Tensor) else repr(value)


def _shown(value: Any) -> list[str]:
    return [shown(value), _digest(value) if isinstance(value, Tensor | np.ndarray) else ""]


def _value(fact: list[str] | None) -> str:
    return "nothing" if fact is None else fact[0]


def _without_places(name: str) -> str:
    """Return the same name for all entries of a list: one that grows, and has values of a rank, has more of them."""
    return re.sub(r"\[\d+\]", "[]", name)


def _must_agree(name: str) -> bool:
    return name.startswith(("optimizer", "scheduler", "torch", "model.trained")) or name.endswith(".training")
