"""Boxes of whole tensors: every element has its holders, and what goes where is exactly what is needed."""

import math
from collections import Counter
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast_runtime.boxes import (
    Box,
    MissingBoxesError,
    Placement,
    Replicate,
    Shard,
    boxes_of,
    covers,
    dissenters,
    missing,
    remainder,
    slices_of,
    strata,
    transfers,
    twins,
)

SHAPES = {"a": (7, 3), "b": (5,), "step": ()}


def cells(*boxes: Box) -> Counter[tuple[str, tuple[int, ...]]]:
    """Every element of boxes, by coordinates, with how often it is there."""
    return Counter(
        (box.tensor, at)
        for box in boxes
        for at in product(*(range(start, end) for start, end in zip(box.offsets, box.ends, strict=True)))
    )


@st.composite
def parts(draw: st.DrawFn, *, shape: tuple[int, ...] = (5, 4)) -> Box:
    starts = [draw(st.integers(0, size)) for size in shape]
    ends = [draw(st.integers(start, size)) for start, size in zip(starts, shape, strict=True)]
    return Box("a", tuple(starts), tuple(end - start for start, end in zip(starts, ends, strict=True)))


@st.composite
def layouts(draw: st.DrawFn) -> dict[int, frozenset[Box]]:
    """What each rank of a mesh has of some tensors, each of them laid out in its own way."""
    mesh = draw(st.sampled_from([(1,), (2,), (3,), (4,), (2, 2), (2, 3), (2, 2, 2)]))
    held: dict[int, set[Box]] = {rank: set() for rank in range(math.prod(mesh))}
    for tensor, shape in SHAPES.items():
        placements = draw(st.tuples(*(placing(len(shape)) for _ in mesh)))
        for rank, coordinate in enumerate(product(*map(range, mesh))):
            held[rank] |= set(
                boxes_of(tensor, shape=shape, mesh_shape=mesh, placements=placements, coordinate=coordinate)
            )
    return {rank: frozenset(boxes) for rank, boxes in held.items()}


def placing(dims: int) -> st.SearchStrategy[Placement]:
    none = st.just(Replicate())
    return none | st.builds(Shard, st.integers(0, dims - 1), st.sampled_from([1, 1, 2, 3])) if dims else none


@given(one=parts(), other=parts())
def test_what_two_boxes_share_and_what_is_left_is_the_whole(one: Box, other: Box) -> None:
    common = one.overlap(other)
    assert cells(*([common] if common else [])) == cells(one) & cells(other)
    assert cells(*one.without(other)) == cells(one) - cells(other)


@given(box=parts(), others=st.lists(parts(), max_size=4))
def test_a_remainder_has_each_element_once(box: Box, others: list[Box]) -> None:
    taken = set(cells(*others))
    assert cells(*remainder(box, others)) == Counter(cell for cell in cells(box) if cell not in taken)


@given(held=layouts())
def test_every_element_is_held_and_no_rank_holds_one_twice(held: dict[int, frozenset[Box]]) -> None:
    whole = {box: 1 for name, shape in SHAPES.items() for box in cells(Box(name, (0,) * len(shape), shape))}
    for boxes in held.values():
        assert max(cells(*boxes).values(), default=1) == 1
    assert set().union(*(cells(*boxes) for boxes in held.values())) == set(whole)


@given(held=layouts())
def test_copies_along_a_mesh_are_equally_many_for_every_element_of_a_tensor(held: dict[int, frozenset[Box]]) -> None:
    count = Counter(cell for boxes in held.values() for cell in cells(*boxes))
    for tensor in SHAPES:
        assert len({number for (name, _), number in count.items() if name == tensor}) == 1


@given(held=layouts())
def test_a_twin_is_who_has_every_element(held: dict[int, frozenset[Box]]) -> None:
    expected = {
        rank: tuple(r for r in held if r != rank and set(cells(*mine)) <= set(cells(*held[r])))
        for rank, mine in held.items()
    }
    assert twins(held) == expected
    assert all(covers(held[twin], held[rank]) for rank, others in expected.items() for twin in others)


@given(held=layouts())
def test_each_element_is_in_the_stratum_of_its_holders(held: dict[int, frozenset[Box]]) -> None:
    found = {cell: ranks for ranks, boxes in strata(held).items() for cell in cells(*boxes)}
    assert sum(len(cells(*boxes)) for boxes in strata(held).values()) == len(found)
    for cell, ranks in found.items():
        assert ranks == tuple(rank for rank, boxes in held.items() if cell in cells(*boxes))


@given(have=layouts(), need=layouts(), strangers=st.booleans())
def test_transfers_bring_exactly_what_is_needed(
    have: dict[int, frozenset[Box]], need: dict[int, frozenset[Box]], strangers: bool
) -> None:
    found = transfers(have, need, strangers=strangers)
    for rank, boxes in need.items():
        own = Counter() if strangers else cells(*have.get(rank, ()))
        assert cells(*(each.box for each in found if each.target_rank == rank)) == cells(*boxes) - own
    assert all(covers(have[each.source_rank], [each.box]) for each in found)


@given(here=layouts(), there=layouts(), data=st.data())
def test_values_come_back_after_a_layout_was_left_and_taken_again(
    here: dict[int, frozenset[Box]], there: dict[int, frozenset[Box]], data: st.DataObject
) -> None:
    lost = set(data.draw(st.lists(st.sampled_from(sorted(here)), max_size=len(here))))
    before = {rank: dict.fromkeys(cells(*boxes), rank) for rank, boxes in here.items()}
    values = {cell: hash(cell) for boxes in before.values() for cell in boxes}
    state = {rank: {cell: values[cell] for cell in cells} for rank, cells in before.items()}
    for have, need in ((here, there), (there, here)):
        moved: dict[int, dict[tuple[str, tuple[int, ...]], int]] = {rank: {} for rank in need}
        for each in transfers(have, need, strangers=True):
            moved[each.target_rank] |= {cell: state[each.source_rank][cell] for cell in cells(each.box)}
        state = moved
    assert state == {rank: {cell: values[cell] for cell in cells} for rank, cells in before.items()}
    alive = {rank: boxes for rank, boxes in here.items() if rank not in lost}
    gone = missing(alive, {rank: here[rank] for rank in lost})
    left = {cell for boxes in alive.values() for cell in cells(*boxes)}
    assert {cell for boxes in gone.values() for cell in cells(*boxes)} == set(values) - left


def test_who_gives_is_near_and_has_given_little() -> None:
    box, other = Box("a", (0,), (4,)), Box("b", (0,), (4,))
    both = frozenset({box, other})
    found = transfers({0: both, 1: both, 2: both}, {3: both}, nodes={0: 0, 1: 1, 2: 1, 3: 1})
    assert [each.source_rank for each in found] == [1, 2]


def test_what_nobody_has_is_named() -> None:
    with pytest.raises(MissingBoxesError, match=r"no rank has a from \[2\] to \[4\], which rank 1 needs; 1 boxes"):
        transfers({0: frozenset({Box("a", (0,), (2,))})}, {1: frozenset({Box("a", (0,), (4,))})})


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ({0: "x", 1: "x", 2: "x"}, {}),
        ({0: "x", 1: "y", 2: "x"}, {(0, 1, 2): (1,)}),
        ({0: "x", 1: "y"}, {(0, 1, 2): (0, 1)}),
        ({0: "x", 1: "y", 2: "z"}, {(0, 1, 2): (0, 1, 2)}),
    ],
    ids=["agree", "minority", "even", "all differ"],
)
def test_a_minority_is_named_and_without_a_majority_all_are(
    said: dict[int, str], expected: dict[tuple[int, ...], tuple[int, ...]]
) -> None:
    assert dissenters({rank: {(0, 1, 2): digest} for rank, digest in said.items()}) == expected


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"placements": ()}, "a has 0 placements and 1 coordinates on a mesh of 1 dimensions"),
        ({"coordinate": (2,)}, "a has coordinate 2 on a dimension of 2; give 0 to 1"),
        ({"placements": (Shard(1),)}, "a of 1 dimensions cannot be cut as Shard(dim=1, split_factor=1)"),
    ],
    ids=["placements", "coordinate", "dimension"],
)
def test_a_layout_that_cannot_be_is_refused(change: dict[str, tuple[int, ...]], message: str) -> None:
    layout = {"shape": (4,), "mesh_shape": (2,), "placements": (Shard(0),), "coordinate": (0,)} | change
    with pytest.raises(ValueError, match="^" + message.replace("(", r"\(").replace(")", r"\)")):
        boxes_of("a", **layout)  # type: ignore[arg-type]


def test_a_rank_outside_the_mesh_has_nothing() -> None:
    assert boxes_of("a", shape=(4,), mesh_shape=(2,), placements=(Shard(0),), coordinate=None) == ()


def test_where_no_box_of_a_rank_has_all_of_it_there_is_no_place() -> None:
    with pytest.raises(ValueError, match="is in none of the boxes that the rank holds"):
        slices_of(
            Box("a", (0,), (3,)), boxes_of("a", shape=(4,), mesh_shape=(2,), placements=(Shard(0),), coordinate=(0,))
        )
