"""
The vote that goes with the last bucket: who is ready, at which step, with which digest and loss, and who was told that
the ranks of a node are to be handed over.

Only sums come back, so what must be equal on all ranks is sent in parts whose sums and sums of squares are exact in 32
bit floating point: they are equal everywhere if and only if n times the sum of squares is the square of the sum.
"""

from dataclasses import dataclass

from torch import Tensor

READY, LOSS, LEAVES, FIRST = 0, 1, 2, 3
PARTS_OF_STEP = 6
PARTS_OF_DIGEST = 8
PART_BITS = 4
PARTS = PARTS_OF_STEP + PARTS_OF_DIGEST
LENGTH = FIRST + 2 * PARTS
"""Numbers that a vote takes."""
MAX_RANKS = 60_000
"""With more, a sum of squares of parts would not be exact in 24 bits."""


@dataclass(frozen=True)
class Outcome:
    """What all ranks together said."""

    ready: int
    mean_loss: float
    same_step: bool
    same_digest: bool
    leaves: int
    """How many would leave after this step. Where it is all of them, all of them see that."""


def cast(tail: Tensor, *, step: int, digest: int, loss: float, leaves: bool = False) -> None:
    """Write this rank's vote. ``digest`` is 0 where none is compared."""
    parts = [(step >> (PART_BITS * place)) & 0xF for place in range(PARTS_OF_STEP)]
    parts += [(digest >> (PART_BITS * place)) & 0xF for place in range(PARTS_OF_DIGEST)]
    numbers = [1.0, loss, float(leaves), *parts, *(part * part for part in parts)]
    tail.copy_(tail.new_tensor(numbers))


def count(tail: Tensor, *, world_size: int) -> Outcome:
    """Read the sum of all votes."""
    numbers = tail.tolist()
    sums, squares = numbers[FIRST : FIRST + PARTS], numbers[FIRST + PARTS :]
    same = [world_size * square == total * total for total, square in zip(sums, squares, strict=True)]
    return Outcome(
        ready=int(numbers[READY]),
        mean_loss=numbers[LOSS] / world_size,
        same_step=all(same[:PARTS_OF_STEP]),
        same_digest=all(same[PARTS_OF_STEP:]),
        leaves=int(numbers[LEAVES]),
    )
