"""How the tensors of a shard lie in a block."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

torch = pytest.importorskip("torch")

from holdfast_runtime.snapshots import (  # noqa: E402
    Block,
    Copy,
    Layout,
    SnapshotError,
)


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
