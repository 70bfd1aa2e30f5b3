"""
The vote that goes with the last bucket: which rank is ready, at which step, with which digests and loss, and whether
the ranks of a node are to be handed over.

Only sums come back, so what must be equal on all ranks is sent in parts whose sums and sums of squares are exact in 32
bit floating point: they are equal everywhere if and only if n times the sum of squares is the square of the sum.
"""

from dataclasses import dataclass

from torch import Tensor

READY, LOSS, LEAVES, FIRST = 0, 1, 2, 3
PART_BITS = 4
PARTS_OF_STEP = 6
PARTS_OF_DIGEST = 8
DIGESTS = 3
PARTS = PARTS_OF_STEP + DIGESTS * PARTS_OF_DIGEST
LENGTH = FIRST + 2 * PARTS
"""Numbers that a vote takes."""


@dataclass(frozen=True)
class Outcome:
    """The votes of all ranks together."""

    ready: int
    mean_loss: float
    same_step: bool
    same_digest: bool
    leaves: int
    """How many would leave after this step. Where it is all of them, all of them see that."""
    same_facts: bool = True
    same_buffers: bool = True


def cast(
    tail: Tensor, *, step: int, digest: int, loss: float, leaves: bool = False, facts: int = 0, buffers: int = 0
) -> None:
    """
    Write this rank's vote.

    Args:
        digest: Of parameters; 0 where none is compared.
        facts: Of all else that must be equal; 0 where it is not compared.
        buffers: Of names, types and shapes of the buffers.
    """
    parts = [(step >> (PART_BITS * place)) & 0xF for place in range(PARTS_OF_STEP)]
    for number in (digest, facts, buffers):
        parts += [(number >> (PART_BITS * place)) & 0xF for place in range(PARTS_OF_DIGEST)]
    numbers = [1.0, loss, float(leaves), *parts, *(part * part for part in parts)]
    tail[:LENGTH].copy_(tail.new_tensor(numbers))


def count(tail: Tensor, *, world_size: int) -> Outcome:
    numbers = tail[:LENGTH].tolist()
    sums, squares = numbers[FIRST : FIRST + PARTS], numbers[FIRST + PARTS :]
    same = [world_size * square == total * total for total, square in zip(sums, squares, strict=True)]
    digests = [all(same[first : first + PARTS_OF_DIGEST]) for first in range(PARTS_OF_STEP, PARTS, PARTS_OF_DIGEST)]
    return Outcome(
        ready=int(numbers[READY]),
        mean_loss=numbers[LOSS] / world_size,
        same_step=all(same[:PARTS_OF_STEP]),
        same_digest=digests[0],
        same_facts=digests[1],
        same_buffers=digests[2],
        leaves=int(numbers[LEAVES]),
    )
