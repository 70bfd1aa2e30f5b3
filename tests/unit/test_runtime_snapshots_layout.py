"""Who keeps whose shard, and how its tensors lie in a block."""

import random
from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

torch = pytest.importorskip("torch")

from holdfast_runtime.snapshots import (  # noqa: E402  # noqa: E402
    Block,
    Copy,
    Layout,
    SnapshotError,
    buddies,
)


@given(sizes=st.lists(st.integers(1, 6), min_size=2, max_size=8), seed=st.integers())
def test_a_keeper_is_on_another_node_and_keeps_one_shard_where_that_is_possible(sizes: list[int], seed: int) -> None:
    nodes = [node for node, size in enumerate(sizes) for _ in range(size)]
    random.Random(seed).shuffle(nodes)
    chosen = buddies(nodes)
    assert chosen.apart
    assert all(nodes[rank] != nodes[keeper] for rank, keeper in enumerate(chosen.keepers))
    load = Counter(chosen.keepers)
    if 2 * max(sizes) <= len(nodes):
        assert set(load.values()) == {1}
    else:
        outside = len(nodes) - max(sizes)
        assert max(load.values()) <= -(-max(sizes) // outside)
    assert sorted(ward for rank in range(len(nodes)) for ward in chosen.wards(rank)) == list(range(len(nodes)))


@given(nodes=st.integers(2, 9), size=st.integers(1, 4))
def test_equal_nodes_are_paired_so_that_few_double_failures_lose_a_shard(nodes: int, size: int) -> None:
    chosen = buddies([rank // size for rank in range(nodes * size)])
    pairs = {frozenset((rank // size, keeper // size)) for rank, keeper in enumerate(chosen.keepers)}
    assert len(pairs) == (nodes // 2 if nodes % 2 == 0 else nodes // 2 + 2 if nodes > 1 else 0)


@pytest.mark.parametrize(("size", "keepers"), [(1, (-1,)), (2, (1, 0)), (3, (1, 2, 0))])
def test_on_one_node_another_process_keeps_the_shard_and_the_map_says_so(size: int, keepers: tuple[int, ...]) -> None:
    chosen = buddies([7] * size)
    assert chosen.keepers == keepers
    assert not chosen.apart


def test_an_update_waits_for_the_copy_and_not_forever() -> None:
    block = Block()
    copy = Copy(block, steady={"parameter": torch.arange(4.0)}, moving={})
    with pytest.raises(SnapshotError, match=r"state was not copied within 0.05 s"):
        copy.settle(deadline_s=0.05)
    copy.run()
    copy.settle(deadline_s=0.05)
    assert copy.layout.entries[0].of(block.data).tolist() == [0.0, 1.0, 2.0, 3.0]


@given(
    shapes=st.lists(st.lists(st.integers(0, 4), max_size=3), max_size=6),
    dtype=st.sampled_from(["float32", "bfloat16", "int64", "uint8", "bool"]),
)
def test_tensors_of_any_shape_and_type_lie_side_by_side_and_come_back(shapes: list[list[int]], dtype: str) -> None:
    tensors = {f"t{index}": torch.randint(0, 2, shape).to(getattr(torch, dtype)) for index, shape in enumerate(shapes)}
    block = Block()
    copy = Copy(block, steady=tensors, moving={})
    copy.run()
    for entry in Layout.from_json(copy.layout.to_json()).entries:
        assert torch.equal(entry.of(block.data), tensors[entry.name])
        assert entry.of(block.data).dtype == tensors[entry.name].dtype


@pytest.mark.parametrize("value", [None, {}, {"entries": [{}], "size": 1}, {"entries": 3, "size": 1}])
def test_what_is_no_layout_is_refused(value: Any) -> None:
    with pytest.raises(SnapshotError, match="not the layout of a shard"):
        Layout.from_json(value)
