"""The judge of the layouts is torch: its own split of a tensor, and the shards of FSDP2 and tensor parallelism."""

import math
from collections.abc import Iterator
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

torch = pytest.importorskip("torch")

import torch.distributed as dist  # noqa: E402
from torch import Tensor, nn  # noqa: E402
from torch.distributed.device_mesh import init_device_mesh  # noqa: E402
from torch.distributed.fsdp import fully_shard  # noqa: E402
from torch.distributed.tensor import DTensor  # noqa: E402
from torch.distributed.tensor import placement_types as placed  # noqa: E402
from torch.distributed.tensor._utils import _compute_local_shape_and_global_offset  # noqa: E402
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module  # noqa: E402
from torch.testing._internal.distributed.fake_pg import FakeStore  # noqa: E402

from holdfast_runtime.boxes import Box, boxes_of, placements_of, slices_of  # noqa: E402


def local_of(whole: Tensor, boxes: tuple[Box, ...], shape: tuple[int, ...]) -> Tensor:
    """The local tensor that has these boxes."""
    local: Tensor = torch.full(shape, -1, dtype=whole.dtype)
    for box in boxes:
        local[slices_of(box, boxes)] = whole[tuple(map(slice, box.offsets, box.ends))]
    return local


@settings(deadline=None)
@given(
    shape=st.lists(st.integers(0, 9), min_size=1, max_size=3),
    mesh=st.lists(st.integers(1, 4), min_size=1, max_size=3),
    data=st.data(),
)
def test_every_rank_has_the_elements_that_torch_gives_it(
    shape: list[int], mesh: list[int], data: st.DataObject
) -> None:
    dims = st.integers(0, len(shape) - 1)
    one = (
        st.just(placed.Replicate())
        | st.builds(placed.Shard, dims)
        | st.builds(lambda dim, factor: placed._StridedShard(dim, split_factor=factor), dims, st.integers(1, 4))
    )
    placements = data.draw(st.tuples(*(one for _ in mesh)))
    whole = torch.arange(math.prod(shape)).view(shape)
    for coordinate in product(*map(range, mesh)):
        local = whole
        for size, placement, position in zip(mesh, placements, coordinate, strict=True):
            if not placement.is_replicate():
                local = placement._split_tensor(local, size, with_padding=False)[0][position]
        boxes = boxes_of("a", shape=shape, mesh_shape=mesh, placements=placements_of(placements), coordinate=coordinate)
        assert torch.equal(local_of(whole, boxes, tuple(local.shape)), local)
        assert sum(box.elements for box in boxes) == local.numel()
        local_shape, offset = _compute_local_shape_and_global_offset(shape, mesh, list(coordinate), placements)
        assert local_shape == tuple(local.shape)
        assert not boxes or boxes[0].offsets == tuple(offset)


@pytest.fixture
def alone(request: pytest.FixtureRequest) -> Iterator[None]:
    """
    One rank of eight, without the others: the fake backend.

    A mesh is asked for its coordinate before there are parameters: torch keeps specs of DTensors in a cache of the
    process, with the mesh of the first rank that made an equal one.
    """
    dist.init_process_group("fake", store=FakeStore(), rank=request.param, world_size=8)
    yield
    dist.destroy_process_group()


@pytest.mark.parametrize("alone", [0, 3, 6], indirect=True)
@pytest.mark.parametrize("names", [("replicate", "shard", "tp"), ("shard", "tp"), ("replicate", "shard"), ("shard",)])
@pytest.mark.usefixtures("alone")
def test_real_modules_are_held_as_the_model_says(names: tuple[str, ...]) -> None:
    sizes = {1: (8,), 2: (4, 2), 3: (2, 2, 2)}[len(names)]
    mesh = init_device_mesh("cpu", sizes, mesh_dim_names=names)
    model = nn.Sequential(nn.Linear(5, 11), nn.Linear(11, 3), nn.LayerNorm(3))
    whole = {}
    for name, parameter in model.named_parameters():
        parameter.data = torch.arange(float(parameter.numel())).view(parameter.shape)
        whole[name] = parameter.data.clone()
    if "tp" in names:
        plan = {"0": ColwiseParallel(), "1": RowwiseParallel()}
        for style in plan.values():
            style.src_data_rank = None
        parallelize_module(model, mesh["tp"], plan, src_data_rank=None)
    shards = tuple(name for name in names if name != "tp")
    fully_shard(model, mesh=mesh[shards] if len(shards) > 1 else mesh[shards[0]])
    everywhere, strided = dict(zip(names, mesh.get_coordinate() or (), strict=True)), False
    for name, parameter in model.named_parameters():
        assert isinstance(parameter, DTensor)
        strided |= any("_StridedShard" in repr(placement) for placement in parameter.placements)
        boxes = boxes_of(
            name,
            shape=parameter.shape,
            mesh_shape=parameter.device_mesh.shape,
            placements=placements_of(parameter.placements),
            coordinate=[everywhere[name] for name in parameter.device_mesh.mesh_dim_names or ()],
        )
        local = parameter.to_local().detach()
        assert torch.equal(local_of(whole[name], boxes, tuple(local.shape)), local)
    assert strided == ("tp" in names)


def test_sums_that_nobody_has_yet_are_no_state() -> None:
    with pytest.raises(ValueError, match=r"state cannot be placed as Partial\(sum\)"):
        placements_of([placed.Partial()])
