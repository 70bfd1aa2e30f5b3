"""FSDP2 modules cut anew: whatever the two sizes, each rank has exactly the rows and moments that are its own."""

import io
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

import pytest
import torch
from torch import Tensor, nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor._sharding_prop import ShardingPropagator

from holdfast_runtime.elastic import Part, Rows, check, complete, put_in, taken_out
from holdfast_runtime.groups import Group, RecordedGroups, UnsupportedError, mesh_like, moved, private, recut
from holdfast_runtime.snapshots import Shard
from holdfast_runtime.transfer import local


@contextmanager
def alone(rank: int, size: int) -> Iterator[None]:
    group = Group(backend="gloo")
    group.open_alone(rank=rank, world_size=size)
    try:
        yield
    finally:
        group.close()


def made(rank: int, size: int) -> tuple[nn.Module, torch.optim.Optimizer]:
    """A model whose values are of their places, after an update."""
    torch.manual_seed(3)
    model = nn.Sequential(nn.Linear(5, 7), nn.Linear(7, 3))
    mesh = init_device_mesh("cpu", (size,))
    for layer in model:
        fully_shard(layer, mesh=mesh)
    fully_shard(model, mesh=mesh)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.1)
    for parameter in model.parameters():
        parameter.grad = torch.ones_like(parameter)
    optimizer.step()
    return model, optimizer


def part_of(rank: int, size: int) -> Part:
    with alone(rank, size):
        model, optimizer = made(rank, size)
        shard = Shard(model, optimizer)
        tensors = {name: tensor.clone() for name, tensor in {**shard.weights(), **shard.steady()}.items()}
        extra, _ = shard.pack()
        private.forget_fsdp(model)
    return Part(rank, size, 1, tensors, extra)


def state(model: nn.Module, optimizer: torch.optim.Optimizer) -> dict[str, Tensor]:
    return {name: tensor.clone() for name, tensor in Shard(model, optimizer).tensors().items()}


@pytest.mark.parametrize(("old", "new"), [(4, 2), (2, 4), (4, 3), (3, 1), (1, 5), (8, 3)])
def test_every_rank_of_another_size_has_what_it_would_have_had_from_the_start(old: int, new: int) -> None:
    parts = [part_of(rank, old) for rank in range(old)]

    for rank in range(new):
        with alone(min(rank, old - 1), old):
            model, optimizer = made(min(rank, old - 1), old)
            parameters = [id(parameter) for parameter in model.parameters()]
            private.forget_fsdp(model)
        with alone(rank, new):
            recut(model, optimizer, mesh_like(init_device_mesh("cpu", (new,))))
            rows = Rows.of(model)
            extra: tuple[bytes, dict[str, Tensor]] | None = None
            for source in rows.sources(rank, old=old, new=new):
                flat = taken_out(parts[source], rows, target=rank, size=new)
                extra = put_in(flat, rows, rank=rank, size=new, model=model, optimizer=optimizer) or extra
            assert extra is not None
            complete(model, optimizer, extra[0])
            wanted_model, wanted = made(rank, new)

            assert parameters == [id(parameter) for parameter in model.parameters()], "objects stay"
            found, right = state(model, optimizer), state(wanted_model, wanted)
            assert found.keys() == right.keys()
            assert all(torch.equal(found[name], right[name]) for name in right), (rank, new)
            private.forget_fsdp(model)
            private.forget_fsdp(wanted_model)


def test_what_is_sent_is_each_row_once() -> None:
    rows = Rows({"weight": (10, 3), "bias": (10,), "small": (1,)})

    for old, new in ((4, 3), (3, 4), (1, 4)):
        given = [
            (name, row)
            for source in range(old)
            for target in range(new)
            for name, given_rows in rows.between(source, target, old=old, new=new).items()
            for row in given_rows
        ]
        assert sorted(given) == sorted(
            [(name, row) for name, count in (("weight", 10), ("bias", 10), ("small", 1)) for row in range(count)]
        )


def test_what_is_no_tensor_comes_with_exactly_one_part() -> None:
    parts = [part_of(rank, 4) for rank in range(4)]
    rows = Rows({"0.weight": (7, 5), "0.bias": (7,), "1.weight": (3, 7), "1.bias": (3,)})

    for target in range(3):
        flats = [taken_out(parts[source], rows, target=target, size=3) for source in rows.sources(target, old=4, new=3)]
        extras = [
            flat for flat in flats if len(flat.tensors) > len(flat.skeleton["rows"]) + len(flat.skeleton["whole"])
        ]
        assert len(extras) == 1
        assert (
            torch.load(io.BytesIO(extras[0].tensors[-1].numpy().tobytes()), weights_only=True)["groups"][0]["lr"] == 0.1
        )


def test_layouts_that_keep_their_size_are_refused_with_all_reasons() -> None:
    with alone(0, 4):
        model = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4))
        fully_shard(model, mesh=init_device_mesh("cpu", (2, 2), mesh_dim_names=("copies", "rows")))

        with pytest.raises(UnsupportedError) as caught:
            check(model, RecordedGroups(), logical=4, pipelines=False)
        private.forget_fsdp(model)

    assert [line.split(";")[0] for line in str(caught.value).splitlines()] == [
        "parameter 0.weight is not cut by rows over a mesh of one dimension, so the job keeps its size",
        "1 has running statistics, which differ from rank to rank and so with their number",
    ]


def test_a_model_of_fully_shard_over_all_ranks_is_taken() -> None:
    with alone(1, 4):
        model, _ = made(1, 4)

        check(model, RecordedGroups(), logical=4, pipelines=False)
        assert local(next(model.parameters())).shape[0] == 2
        private.forget_fsdp(model)


def test_a_process_that_had_another_rank_at_this_size_has_the_coordinate_of_the_one_that_it_has_now() -> None:
    """DTensor caches by meshes that are equal, and would give the mesh of the earlier rank."""
    with alone(2, 4):
        model, optimizer = made(2, 4)
        private.forget_fsdp(model)
    for rank, size in ((1, 2), (1, 4), (3, 4), (2, 4)):
        with alone(rank, size):
            recut(model, optimizer, mesh_like(init_device_mesh("cpu", (size,))))
            moments = [value for state in optimizer.state.values() for value in state.values() if value.dim()]
            meshes = [tensor.device_mesh for tensor in (*model.parameters(), *moments)]
            assert {mesh.get_coordinate() for mesh in meshes} == {(rank,)}
            private.forget_fsdp(model)


def even(size: int) -> tuple[nn.Module, torch.optim.Optimizer]:
    torch.manual_seed(3)
    # Sizes that no other test has: DTensor keeps its layouts, with the meshes of whatever ran in this process before.
    model = nn.Sequential(nn.Linear(12, 44), nn.Linear(44, 52))
    for layer in model:
        fully_shard(layer, mesh=init_device_mesh("cpu", (size,)))
    return fully_shard(model, mesh=init_device_mesh("cpu", (size,))), torch.optim.AdamW(model.parameters(), lr=0.1)


def never(*_: Any) -> NoReturn:
    raise AssertionError("asked again")


def test_a_process_becomes_another_rank_whose_part_is_as_large_and_caches_of_layouts_hold(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with alone(1, 4):
        model, optimizer = even(4)
        for parameter in model.parameters():
            parameter.grad = torch.ones_like(parameter)
        optimizer.step()
        private.forget_fsdp(model)

    assert moved(model, 3)

    with alone(3, 4):
        private.renew_fsdp(model)
        for parameter in model.parameters():
            parameter.grad = torch.ones_like(parameter)
        with monkeypatch.context() as patched:
            patched.setattr(ShardingPropagator, "propagate_op_sharding_non_cached", never)
            optimizer.step()
        moments = [value for state in optimizer.state.values() for value in state.values() if value.dim()]
        assert {tensor.device_mesh.get_coordinate() for tensor in (*model.parameters(), *moments)} == {(3,)}
        assert {info.shard_mesh_rank for info in private.fsdp_mesh_infos(model)} == {3}
        wanted, _ = even(4)
        for own, right in zip(model.parameters(), wanted.parameters(), strict=True):
            assert own.to_local().shape == right.to_local().shape
            assert type(own) is type(right)
        private.forget_fsdp(model)
        private.forget_fsdp(wanted)


def test_a_process_is_no_other_rank_where_parts_differ_in_size_or_a_mesh_was_cut() -> None:
    with alone(0, 4):
        uneven, _ = made(0, 4)
        model, optimizer = even(4)
        recut(model, optimizer, mesh_like(init_device_mesh("cpu", (4,))))

        for each in (uneven, model):
            assert not moved(each, 1)
            assert {info.mesh.get_coordinate() for info in private.fsdp_mesh_infos(each)} == {(0,)}
            private.forget_fsdp(each)
