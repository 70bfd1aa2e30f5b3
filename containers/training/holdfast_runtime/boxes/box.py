"""Parts of tensors in the coordinates of whole tensors, and the little geometry that is needed of them."""

import math
from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, order=True)
class Box:
    """
    A part of a tensor without gaps.

    A tensor without dimensions has one box of one element: ``Box("step", (), ())``.
    """

    tensor: str
    """The same name on two ranks means the same tensor, so stages of a pipeline that count their layers from 0 each
    need a name of their own in front."""
    offsets: tuple[int, ...]
    """Of its first element in the whole tensor, by dimension."""
    shape: tuple[int, ...]

    @property
    def elements(self) -> int:
        return math.prod(self.shape)

    @property
    def ends(self) -> tuple[int, ...]:
        return tuple(offset + size for offset, size in zip(self.offsets, self.shape, strict=True))

    def overlap(self, other: "Box") -> "Box | None":
        """Return the intersection; None if it is empty."""
        if self == other:
            return self if self.elements else None
        if self.tensor != other.tensor or len(self.shape) != len(other.shape):
            return None
        starts = tuple(map(max, self.offsets, other.offsets))
        ends = tuple(map(min, self.ends, other.ends))
        if any(start >= end for start, end in zip(starts, ends, strict=True)):
            return None
        return Box(self.tensor, starts, tuple(end - start for start, end in zip(starts, ends, strict=True)))

    def without(self, other: "Box") -> "tuple[Box, ...]":
        common = self.overlap(other)
        if common is None:
            return (self,) if self.elements else ()
        left, starts, ends = [], list(self.offsets), list(self.ends)
        for dim, (first, last) in enumerate(zip(common.offsets, common.ends, strict=True)):
            for start, end in ((starts[dim], first), (last, ends[dim])):
                if start < end:
                    left.append(_between(self.tensor, starts, ends, dim=dim, start=start, end=end))
            starts[dim], ends[dim] = first, last
        return tuple(left)


def remainder(box: Box, taken: Iterable[Box]) -> tuple[Box, ...]:
    left: tuple[Box, ...] = (box,) if box.elements else ()
    for other in taken:
        left = tuple(piece for part in left for piece in part.without(other))
        if not left:
            break
    return left


def _between(tensor: str, starts: list[int], ends: list[int], *, dim: int, start: int, end: int) -> Box:
    offsets = (*starts[:dim], start, *starts[dim + 1 :])
    limits = (*ends[:dim], end, *ends[dim + 1 :])
    return Box(tensor, offsets, tuple(limit - offset for offset, limit in zip(offsets, limits, strict=True)))
