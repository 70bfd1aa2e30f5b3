"""
Comparison of all that must be equal on ranks besides parameters, and the values that are of one rank alone.

The vote has a digest of the facts of each rank. Where it is not the same, the ranks send each other the facts. In a job
that has lost no rank, a difference is the program's intention: such values are gathered with each vote, so that a
process that takes over a rank gets that rank's. After a recovery a difference ends the job, with its name and values.
"""

import io
import json
import zlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from holdfast_runtime.inprocess.digest import digest_of
from holdfast_runtime.inprocess.errors import DivergenceError
from holdfast_runtime.inprocess.state import TrainingState
from holdfast_runtime.state import Path, named, shown
from holdfast_runtime.transfer import local

VOTES = 3
"""First votes of a generation that compare all facts: code around a step shows its effect in the next one."""
MOST_BYTES = 1 << 20
"""Of the values of one rank that are gathered with a vote."""
Wait = Callable[[Any], object]


class Comparison:
    """
    Of one process.

    Args:
        every: Updates between two comparisons of all facts; in between only ``state=`` is compared.
    """

    def __init__(self, state: TrainingState, *, every: int) -> None:
        self._state = state
        self._every = every
        self._generation = self._votes = 0

    def is_whole(self, *, generation: int, step: int) -> bool:
        """Return True if the vote of a step compares all facts and the parameters; the same on all ranks."""
        if generation != self._generation:
            self._generation, self._votes = generation, 0
        return self._votes < VOTES or step % self._every == 0

    def counted(self) -> None:
        """A vote is over."""
        self._votes += 1

    def judge(self, facts: Mapping[Path, Any], *, recovered: bool, group: Sequence[int], rank: int, wait: Wait) -> None:
        """
        Ranks have other facts: name them, or remember that they are of a rank each. A collective of all ranks.

        Args:
            recovered: Whether the job has lost a rank in its life.
            group: Ranks that must be equal, this one among them.

        Raises:
            DivergenceError: a difference that a recovery has made.
        """
        mine = {
            "left": self._state.left_last,
            "facts": {named(path): _shown(value) for path, value in facts.items()},
            "by rank": sorted(self._state.by_rank),
        }
        others = [json.loads(data) for data in gathered_bytes(json.dumps(mine).encode(), wait=wait)]
        self._state.by_rank |= {name for each in others for name in each["by rank"]}
        every = [others[each]["facts"] for each in group]
        different = [
            name
            for name in dict.fromkeys(name for each in every for name in each)
            if name not in self._state.by_rank and any(each.get(name) != every[0].get(name) for each in every)
        ]
        if different and recovered and (self._votes < VOTES or any(map(_must_agree, different))):
            name = different[0]
            own = others[rank]["facts"].get(name)
            other = next((each for each in group if others[each]["facts"].get(name) != own), group[0])
            left = max(each["left"] for each in others)
            cause = f"; code after `with step:` ran for step {left}, which was left" if left >= 0 else ""
            raise DivergenceError(
                f"{name}: {_value(own)} at rank {rank}, {_value(others[other]['facts'].get(name))} at rank "
                f"{other}{cause}. Give what it depends on to Run(state=...), or guard the code with `if step.done:`"
                + (f" ({len(different) - 1} more differ)" if len(different) > 1 else "")
            )
        self._state.by_rank |= {*different}

    def different_parameter(self, *, wait: Wait) -> str:
        """Return a sentence on the first parameter that is not the same on all ranks. A collective of all ranks."""
        named_parameters = [(name, local(tensor)) for name, tensor in self._state.model.named_parameters()]
        mine = {name: [shown(tensor), digest_of([tensor])] for name, tensor in named_parameters}
        every = [json.loads(data) for data in gathered_bytes(json.dumps(mine).encode(), wait=wait)]
        for name in mine:
            for rank, theirs in enumerate(every):
                if theirs.get(name) != every[0].get(name):
                    return (
                        f"the parameters of the ranks are different: {name} is {every[0].get(name, ['nothing'])[0]} at "
                        f"rank 0, and {theirs.get(name, ['nothing'])[0]} at rank {rank}"
                    )
        return "the parameters of the ranks are different"

    def gather(self, *, step: int, wait: Wait) -> None:
        """Give all ranks the values that are of this rank alone, as they are after ``step`` updates. A collective."""
        if not self._state.by_rank:
            return
        buffer = io.BytesIO()
        torch.save(self._state.own_values(), buffer)
        data = buffer.getvalue()
        found = gathered_bytes(data if len(data) <= MOST_BYTES else b"", wait=wait)
        self._state.keep_of_ranks(step, [_loaded(each) for each in found])


def gathered_bytes(data: bytes, *, wait: Wait) -> list[bytes]:
    """Return the bytes of each rank, by rank. Raises what ``wait`` does when a rank is lost."""
    size = dist.get_world_size()
    nccl = dist.get_backend() == "nccl"
    device = torch.device("cuda") if nccl else torch.device("cpu")
    lengths = [torch.zeros(1, dtype=torch.int64, device=device) for _ in range(size)]
    wait(dist.all_gather(lengths, torch.tensor([len(data)], device=device), async_op=True))
    most = max(1, *(int(length) for length in lengths))
    own = torch.zeros(most, dtype=torch.uint8, device=device)
    own[: len(data)] = torch.tensor([*data], dtype=torch.uint8, device=device)
    found = [torch.zeros_like(own) for _ in range(size)]
    wait(dist.all_gather(found, own, async_op=True))
    return [each[: int(length)].cpu().numpy().tobytes() for each, length in zip(found, lengths, strict=True)]


def digest_of_facts(facts: Mapping[Path, Any]) -> int:
    """Return a digest of facts; 32 bits, and never 0."""
    text = "\n".join(f"{path!r} {_digest(value)}" for path, value in facts.items())
    return zlib.crc32(text.encode()) or 1


def _digest(value: Any) -> str:
    return f"tensor {digest_of([local(value)])}" if isinstance(value, Tensor) else repr(value)


def _shown(value: Any) -> list[str]:
    return [shown(value), _digest(value) if isinstance(value, Tensor) else ""]


def _value(fact: list[str] | None) -> str:
    return "nothing" if fact is None else fact[0]


def _must_agree(name: str) -> bool:
    """Return True for facts that no replica may have of its own."""
    return name.startswith(("optimizer", "scheduler", "torch", "model.trained")) or name.endswith(".training")


def _loaded(data: bytes) -> dict[Path, Any] | None:
    return torch.load(io.BytesIO(data), weights_only=True) if data else None
