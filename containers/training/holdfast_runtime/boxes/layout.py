"""
Boxes of a tensor at a rank, from the layout that torch gives a DTensor.

The rules are those of ``torch.distributed.tensor.placement_types``: placements cut from left to right, a dimension is
cut as ``torch.chunk`` does (equal parts rounded up, so the last ones may be smaller or empty), and a strided shard,
which FSDP2 makes over tensor parallelism, cuts ``split_factor`` parts first and takes its share of each of them.
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Protocol

from holdfast_runtime.boxes.box import Box

Run = tuple[int, int]
"""First index and count, along one dimension."""


@dataclass(frozen=True)
class Replicate:
    """All along a dimension of the mesh have the same."""


@dataclass(frozen=True)
class Shard:
    """A dimension of the tensor is cut along a dimension of the mesh."""

    dim: int
    split_factor: int = 1
    """Parts that are cut first, each of which is then cut for the ranks: more than 1 where a dimension of the mesh
    further right was cut earlier (``_StridedShard``). Default: the whole is cut"""


Placement = Replicate | Shard


class _Placed(Protocol):
    def is_replicate(self) -> bool: ...
    def is_partial(self) -> bool: ...


def placements_of(given: Iterable[_Placed]) -> tuple[Placement, ...]:
    """
    From the placements of a DTensor (``tensor.placements``).

    Raises:
        ValueError: one is ``Partial``: sums that nobody has yet are not state; or it is of a kind that is not known.
    """
    found: list[Placement] = []
    for each in given:
        dim = getattr(each, "dim", None)
        if each.is_replicate():
            found.append(Replicate())
        elif isinstance(dim, int) and not each.is_partial():
            found.append(Shard(dim, int(getattr(each, "split_factor", 1))))
        else:
            raise ValueError(f"state cannot be placed as {each!r}; it has to be replicated or cut along a dimension")
    return tuple(found)


def boxes_of(
    tensor: str,
    *,
    shape: Sequence[int],
    mesh_shape: Sequence[int] = (),
    placements: Sequence[Placement] = (),
    coordinate: Sequence[int] | None = (),
) -> tuple[Box, ...]:
    """
    Boxes of one rank, by ascending offsets. In the rank's local tensor they lie in the same order.

    Args:
        shape: of the whole tensor.
        mesh_shape: of the mesh that it is distributed over. Default: of no mesh, a plain tensor
        coordinate: of the rank in the mesh; None when it is not in it.

    Returns:
        One box where nothing is strided; none for a rank that has no element.

    Raises:
        ValueError: the layout cannot be: another number of placements than dimensions, a coordinate outside the mesh,
            a dimension that the tensor does not have.
    """
    if coordinate is None:
        return ()
    if not len(mesh_shape) == len(placements) == len(coordinate):
        raise ValueError(
            f"{tensor} has {len(placements)} placements and {len(coordinate)} coordinates on a mesh of "
            f"{len(mesh_shape)} dimensions; give one of each for every dimension"
        )
    runs: list[tuple[Run, ...]] = [((0, size),) if size else () for size in shape]
    for size, placement, position in zip(mesh_shape, placements, coordinate, strict=True):
        if not 0 <= position < size:
            raise ValueError(f"{tensor} has coordinate {position} on a dimension of {size}; give 0 to {size - 1}")
        if isinstance(placement, Shard):
            if not (0 <= placement.dim < len(runs) and placement.split_factor >= 1):
                raise ValueError(f"{tensor} of {len(runs)} dimensions cannot be cut as {placement}")
            runs[placement.dim] = _share(runs[placement.dim], placement, parts=size, position=position)
    return tuple(
        Box(tensor, tuple(start for start, _ in each), tuple(count for _, count in each)) for each in product(*runs)
    )


def slices_of(box: Box, held: Collection[Box]) -> tuple[slice, ...]:
    """
    Slices of a box in the local tensor of a rank.

    Args:
        held: all of the rank; those of other tensors do not matter.

    Raises:
        ValueError: no box of the rank has all of it.
    """
    mine = [other for other in held if other.tensor == box.tensor]
    around = next((other for other in mine if other.overlap(box) == box), None)
    if around is None:
        raise ValueError(f"{box} is in none of the boxes that the rank holds: {sorted(mine)}")
    found = []
    for dim, start in enumerate(box.offsets):
        before = {(other.offsets[dim], other.shape[dim]) for other in mine if other.offsets[dim] < around.offsets[dim]}
        first = sum(count for _, count in before) + start - around.offsets[dim]
        found.append(slice(first, first + box.shape[dim]))
    return tuple(found)


def _share(runs: Sequence[Run], placement: Shard, *, parts: int, position: int) -> tuple[Run, ...]:
    found: list[Run] = []
    for first, last in _chunks(sum(count for _, count in runs), placement.split_factor):
        start, end = _chunks(last - first, parts)[position]
        found += _cut(runs, first + start, first + end)
    return _joined(found)


def _chunks(size: int, parts: int) -> list[tuple[int, int]]:
    each = -(-size // parts)
    return [(min(each * part, size), min(each * (part + 1), size)) for part in range(parts)]


def _cut(runs: Sequence[Run], start: int, end: int) -> list[Run]:
    found, passed = [], 0
    for first, count in runs:
        low, high = max(start - passed, 0), min(end - passed, count)
        if low < high:
            found.append((first + low, high - low))
        passed += count
    return found


def _joined(runs: Sequence[Run]) -> tuple[Run, ...]:
    found: list[Run] = []
    for first, count in runs:
        if found and sum(found[-1]) == first:
            found[-1] = (found[-1][0], found[-1][1] + count)
        else:
            found.append((first, count))
    return tuple(found)
