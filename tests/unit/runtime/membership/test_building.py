"""Which ranks spares of a sharded job make their models for."""

from dataclasses import replace

from holdfast_runtime.membership import RankStatus, Slot, View, missing, to_build, to_take

FOUR = View(
    generation=3,
    nodes=(5, 6, 7, 8),
    ranks=tuple(RankStatus(slot=Slot(rank // 2, rank % 2), rank=rank) for rank in range(4)),
)


def in_turn(node: int, *, count: int) -> list[int]:
    found: list[int] = []
    for _ in range(count):
        found.append(to_build(FOUR, node=node, built=found))
    return found


def test_spares_beside_ranks_are_built_for_those_first_and_for_the_first_rank_of_a_node_last() -> None:
    assert in_turn(1, count=5) == [3, 2, 1, 0, -1]


def test_a_node_without_ranks_is_built_for_one_whole_node_and_the_next_such_node_for_another() -> None:
    assert in_turn(2, count=2) == [1, 0]
    assert in_turn(3, count=2) == [3, 2]


def test_a_node_that_no_view_names_is_built_for_some_node_too() -> None:
    alone = replace(FOUR, nodes=(5, 6, 7, -1))

    assert to_build(alone, node=3, built=()) == 1


def test_nothing_is_built_before_there_is_a_view() -> None:
    assert to_build(View(generation=0, nodes=(0, 0)), node=0, built=()) == -1


def test_ranks_that_are_given_away_are_divided_among_nodes_by_their_spares() -> None:
    assert to_take((4, 5, 6), spares={3: 1, 2: 0, 1: 4}) == {1: (4, 5, 6)}
    assert to_take((4, 5, 6), spares={3: 2, 1: 1}) == {1: (4,), 3: (5, 6)}
    assert to_take((4, 5), spares={1: 1}) == {1: (4,)}


def test_a_rank_is_missing_until_a_spare_is_built_for_it_or_can_become_it() -> None:
    assert missing((1, 2), built=[(1, False), (3, False)]) == (2,)
    assert missing((1, 2), built=[(1, True), (3, True)]) == ()
    assert missing((1, 2), built=[(1, True)]) == (2,)
    assert missing((1, 2), built=[]) == (1, 2)
