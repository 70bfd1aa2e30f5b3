"""Digests of parts of a model: ranks with the same part, and no others, have the same. The judge is torch."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

torch = pytest.importorskip("torch")

import torch.distributed as dist  # noqa: E402
from torch import nn  # noqa: E402
from torch.distributed.device_mesh import init_device_mesh  # noqa: E402
from torch.distributed.fsdp import fully_shard  # noqa: E402
from torch.distributed.tensor import DTensor, Partial  # noqa: E402
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module  # noqa: E402
from torch.testing._internal.distributed.fake_pg import FakeStore  # noqa: E402

from holdfast_runtime.groups import RecordedGroups  # noqa: E402
from holdfast_runtime.sharded import Sharded  # noqa: E402

SIZES = {1: (8,), 2: (4, 2), 3: (2, 2, 2)}


@contextmanager
def alone(rank: int) -> Iterator[None]:
    """One rank of eight, without the others: the fake backend."""
    dist.init_process_group("fake", store=FakeStore(), rank=rank, world_size=8)
    try:
        yield
    finally:
        dist.destroy_process_group()


def part_here(names: tuple[str, ...], rank: int) -> tuple[str, str]:
    """
    Digest of the part of a rank, and its values.

    Torch keeps specs of DTensors in a cache of the process, with the mesh of the first rank that made an equal one; so
    meshes of two ranks are not equal.
    """
    names = tuple(f"{name} {rank}" for name in names)
    mesh = init_device_mesh("cpu", SIZES[len(names)], mesh_dim_names=names)
    model = nn.Sequential(nn.Linear(5, 19), nn.Linear(19, 7), nn.LayerNorm(7))
    for parameter in model.parameters():
        parameter.data = torch.arange(float(parameter.numel())).view(parameter.shape)
    if tensor := [name for name in names if name.startswith("tp")]:
        plan = {"0": ColwiseParallel(), "1": RowwiseParallel()}
        for style in plan.values():
            style.src_data_rank = None
        parallelize_module(model, mesh[tensor[0]], plan, src_data_rank=None)
    shards = tuple(name for name in names if name not in tensor)
    fully_shard(model, mesh=mesh[shards] if len(shards) > 1 else mesh[shards[0]])
    values = [parameter.to_local().tolist() for parameter in model.parameters() if isinstance(parameter, DTensor)]
    return Sharded(model, RecordedGroups()).holds, repr(values)


@pytest.mark.parametrize("names", [("replicate", "shard", "tp"), ("shard", "tp"), ("replicate", "shard"), ("shard",)])
def test_ranks_with_the_same_part_and_no_others_have_the_same_digest(names: tuple[str, ...]) -> None:
    parts = []
    for rank in range(8):
        with alone(rank):
            parts.append(part_here(names, rank))

    digests, values = zip(*parts, strict=True)
    assert [digests.index(one) for one in digests] == [values.index(one) for one in values]


def test_sums_that_nobody_has_yet_are_no_state() -> None:
    with alone(0):
        summed = DTensor.from_local(torch.ones(2), init_device_mesh("cpu", (8,)), [Partial()], run_check=False)
        model = nn.Module()
        model.weight = nn.Parameter(summed)
        with pytest.raises(ValueError, match=r"state cannot be placed as Partial\(sum\)"):
            Sharded(model, RecordedGroups())
