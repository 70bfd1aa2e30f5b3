"""A norm over all ranks with the same bits however the numbers are divided: whole numbers are added, not rounded."""

from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

LIMBS = 3
BITS = 30


@torch.no_grad()
def exact_norm(parts: Sequence[Tensor], *, size: int, wait: Callable[[Any], object]) -> float:
    """
    The 2-norm of tensors of which each rank has a part. A collective.

    Squares of 32-bit numbers are exact in 64 bits. Scaled by the largest one they are cut into limbs, which are added
    as integers: what is below the last limb is cut off in the same way for each number, wherever it is.
    """
    tops = [part.abs().amax().double().cpu() for part in parts if part.numel()]
    top = torch.stack(tops).amax() if tops else torch.zeros((), dtype=torch.float64)
    if size > 1:
        wait(dist.all_reduce(top, op=dist.ReduceOp.MAX, async_op=True))
    largest = float(top)
    if largest == 0.0 or not torch.isfinite(top):
        return largest
    scale = 2.0 ** (BITS - 2 * int(torch.frexp(top)[1]))
    sums = torch.zeros(LIMBS, dtype=torch.int64)
    for part in parts:
        rest = part.double().square_().mul_(scale)
        for limb in range(LIMBS):
            whole = rest.floor()
            sums[limb] += whole.long().sum().cpu()
            rest = rest.sub_(whole).mul_(2.0**BITS)
    if size > 1:
        wait(dist.all_reduce(sums, async_op=True))
    total = 0
    for limb in sums.tolist():
        total = (total << BITS) + int(limb)
    return float((total / 2.0 ** (BITS * (LIMBS - 1)) / scale) ** 0.5)
