"""Who keeps whose snapshots, and what may therefore be lost."""

import random
from collections import Counter
from collections.abc import Sequence
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast_common.placement import Keepers, Spot, keepers, needs_snapshots, survival


def on(nodes: Sequence[int], racks: Sequence[str] = ()) -> list[Spot]:
    return [Spot(node, racks[node] if racks else "") for node in nodes]


def lost_with(place: set[int], *, alike: Sequence[Sequence[int]], kept: Keepers | None) -> set[int]:
    """Ranks whose state is nowhere once the ranks of a place are gone."""
    lost = set()
    for same in alike:
        holders = {*same, *(kept.of[rank] for rank in same if kept)} - {-1}
        lost |= {rank for rank in same if rank in place and holders <= place}
    return lost


@given(sizes=st.lists(st.integers(1, 6), min_size=2, max_size=8), seed=st.integers())
def test_a_keeper_is_on_another_node_and_keeps_one_shard_where_that_is_possible(sizes: list[int], seed: int) -> None:
    nodes = [node for node, size in enumerate(sizes) for _ in range(size)]
    random.Random(seed).shuffle(nodes)
    chosen = keepers(on(nodes))
    assert chosen.apart == "node"
    assert all(nodes[rank] != nodes[keeper] for rank, keeper in enumerate(chosen.of))
    load = Counter(chosen.of)
    if 2 * max(sizes) <= len(nodes):
        assert set(load.values()) == {1}
    else:
        outside = len(nodes) - max(sizes)
        assert max(load.values()) <= -(-max(sizes) // outside)
    assert sorted(ward for rank in range(len(nodes)) for ward in chosen.wards(rank)) == list(range(len(nodes)))


@given(nodes=st.integers(2, 9), size=st.integers(1, 4))
def test_equal_nodes_are_paired_so_that_few_double_failures_lose_a_shard(nodes: int, size: int) -> None:
    chosen = keepers(on([rank // size for rank in range(nodes * size)]))
    pairs = {frozenset((rank // size, keeper // size)) for rank, keeper in enumerate(chosen.of)}
    assert len(pairs) == (nodes // 2 if nodes % 2 == 0 else nodes // 2 + 2)


@given(sizes=st.lists(st.integers(1, 5), min_size=2, max_size=5), per_node=st.integers(1, 3), seed=st.integers())
def test_a_keeper_is_in_another_rack_where_no_rack_has_more_than_half(
    sizes: list[int], per_node: int, seed: int
) -> None:
    racks = [f"r{rack}" for rack, size in enumerate(sizes) for _ in range(size)]
    random.Random(seed).shuffle(racks)
    spots = on([node for node in range(len(racks)) for _ in range(per_node)], racks)
    chosen = keepers(spots)
    one = max(sizes) * 2 <= sum(sizes)
    assert chosen.apart == ("rack" if one else "node")
    assert all(spots[rank].node != spots[keeper].node for rank, keeper in enumerate(chosen.of))
    assert not one or all(spots[rank].rack != spots[keeper].rack for rank, keeper in enumerate(chosen.of))
    assert not one or set(Counter(chosen.of).values()) == {1}
    assert survival(spots, kept=chosen).reach in (("rack",) if one else ("node", "rack"))


@pytest.mark.parametrize(("size", "of"), [(1, (-1,)), (2, (1, 0)), (3, (1, 2, 0)), (5, (1, 0, 3, 4, 2))])
def test_on_one_node_another_process_keeps_it_and_the_answer_says_so(size: int, of: tuple[int, ...]) -> None:
    assert keepers(on([7] * size)) == Keepers(of, "process" if size > 1 else "nothing")


@pytest.mark.parametrize(("size", "fatal"), [(2, 1), (4, 2), (5, 4), (8, 4)])
def test_processes_of_one_node_are_paired_so_that_few_double_losses_lose_a_shard(size: int, fatal: int) -> None:
    kept = keepers(on([0] * size)).of
    lost = [pair for pair in combinations(range(size), 2) if any(kept[rank] in pair for rank in pair)]

    assert len(lost) == fatal


def test_who_has_a_twin_on_another_node_needs_no_keeper() -> None:
    apart = keepers(on([0, 0, 1, 1]), alike=[(0, 2), (1, 3)])
    together = keepers(on([0, 0, 1, 1]), alike=[(0, 1), (2, 3)])
    assert apart.of == (-1, -1, -1, -1)
    assert together.of == (2, 3, 0, 1)


@given(
    nodes=st.lists(st.integers(0, 3), min_size=1, max_size=8),
    racks=st.none() | st.lists(st.sampled_from("ab"), min_size=4, max_size=4),
    twins=st.integers(1, 4),
    keeping=st.booleans(),
)
def test_what_is_said_to_be_safe_is_safe_and_what_is_said_to_be_short_is_short(
    nodes: list[int], racks: list[str] | None, twins: int, keeping: bool
) -> None:
    spots = on(nodes, racks or ())
    ranks = range(len(nodes))
    same = [tuple(ranks[first : first + twins]) for first in ranks[::twins]]
    kept = keepers(spots, alike=same) if keeping else None
    found = survival(spots, alike=same, kept=kept)

    by_reach = {
        "process": [{rank} for rank in range(len(nodes))],
        "node": [{r for r, spot in enumerate(spots) if spot.node == node} for node in set(nodes)],
        "rack": [{r for r, spot in enumerate(spots) if spot.rack == rack} for rack in {s.rack for s in spots}],
    }
    reaches = ["process", "node", "rack"] if len({spot.rack for spot in spots}) > 1 else ["process", "node"]
    lost = {reach: [lost_with(place, alike=same, kept=kept) for place in by_reach[reach]] for reach in reaches}
    safe = [reach for reach in reaches if not any(lost[reach])]
    first = next((reach for reach in reaches if reach not in safe), None)
    assert found.reach == (
        reaches[reaches.index(first) - 1] if first and first != "process" else "nothing" if first else reaches[-1]
    )
    assert set(found.short) == (set().union(*lost[first]) if first else set())


LEAF = tuple(range(8))
"""Nodes below one of four leaf switches."""
SHARDED = [(rank,) for rank in range(256)]
NEAR_TWINS = [(rank, rank + 8) for first in range(0, 256, 16) for rank in range(first, first + 8)]
FAR_TWINS = [(rank, rank + 128) for rank in range(128)]


@pytest.mark.parametrize("known", [True, False], ids=["topology", "no topology"])
@pytest.mark.parametrize(
    ("same", "lost_with_topology", "lost_without"),
    [(SHARDED, 0, 64), (FAR_TWINS, 0, 0), (NEAR_TWINS, 64, 64)],
    ids=["shards", "twins of other leaves", "twins of one leaf"],
)
def test_a_leaf_switch_of_eight_of_thirty_two_nodes_takes_what_was_predicted(
    same: list[tuple[int, ...]], lost_with_topology: int, lost_without: int, known: bool
) -> None:
    nodes = [rank // 8 for rank in range(256)]
    spots = on(nodes, [f"nn-{node // 8}" for node in range(32)] if known else ())
    kept = keepers(spots, alike=same) if needs_snapshots(spots, alike=same) else None
    predicted = survival(spots, alike=same, kept=kept)

    lost = lost_with({rank for rank, node in enumerate(nodes) if node in LEAF}, alike=same, kept=kept)

    assert len(lost) == (lost_with_topology if known else lost_without)
    if known:
        assert predicted.reach == ("node" if lost else "rack")
        assert lost <= set(predicted.short)
    else:
        assert predicted.reach == "node", "no rack is known, so none is promised"


@pytest.mark.parametrize(
    ("nodes", "racks", "keeping", "said"),
    [
        ([0, 0], (), False, "no process may be lost without going back to a checkpoint: no other one has"),
        ([3, 3], (), True, "any one process may be lost, and no whole node: no other node has"),
        ([0, 1], (), True, "any one node may be lost"),
        ([0, 0, 1, 2], ("a", "a", "b"), True, "any one node may be lost, and no whole rack: no other rack has"),
        ([0, 1], ("a", "b"), True, "any one rack may be lost"),
    ],
    ids=["nothing", "process", "node", "node of racks", "rack"],
)
def test_what_may_be_lost_is_a_sentence(nodes: list[int], racks: Sequence[str], keeping: bool, said: str) -> None:
    spots = on(nodes, racks)
    found = survival(spots, kept=keepers(spots) if keeping else None)
    whose = {"process": " the state of ranks 0, 1", "rack": " the state of ranks 0, 2"}
    assert str(found) == said + (whose["rack" if "rack:" in said else "process"] if found.short else "")


def test_a_job_that_wants_more_is_refused() -> None:
    found = survival(on([0, 0]), kept=keepers(on([0, 0])))
    assert found.refusal("process") == ""
    assert found.refusal("node") == (
        "survive is 'node', but any one process may be lost, and no whole node: no other node has the state of ranks "
        "0, 1; give the job snapshots (snapshot_every) or replicas, and more than one node, or set survive to 'process'"
    )
