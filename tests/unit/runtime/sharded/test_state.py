"""The part of a sharded model that a rank has, sent to one that has the same part. Torch's fake backend."""

from collections.abc import Iterator
from typing import Any

import pytest
import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import DTensor

from holdfast_runtime.groups import Group, RecordedGroups
from holdfast_runtime.inprocess import TrainingState
from holdfast_runtime.sharded import Sharded
from holdfast_runtime.transfer import local


@pytest.fixture
def group() -> Iterator[Group]:
    made = Group(backend="gloo")
    yield made
    made.close()


def made(*, updates: int) -> TrainingState:
    """As rank 2 of four has it: odd rows, so its part is smaller than that of others."""
    torch.manual_seed(updates)
    model = nn.Sequential(nn.Linear(4, 7), nn.Linear(7, 3))
    fully_shard(model)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.1)
    for _ in range(updates):
        for parameter in model.parameters():
            parameter.grad = torch.ones_like(parameter)
        optimizer.step()
    return TrainingState(model, optimizer, scheduler=None, added={})


def parts(state: TrainingState) -> list[torch.Tensor]:
    kept = [state.optimizer.state[parameter] for parameter in state.model.parameters()]
    return [
        local(tensor)
        for tensor in (*state.model.parameters(), *(kept[n][k] for n in range(4) for k in sorted(kept[n])))
    ]


@pytest.mark.parametrize("before", [0, 5], ids=["a newcomer", "one that returns with a later step"])
def test_a_twin_s_part_is_taken_over_with_its_moments_and_its_step(group: Group, before: int) -> None:
    group.open_alone(rank=2, world_size=4)
    donor, receiver = made(updates=3), made(updates=before)

    receiver.load(donor.flat())

    assert all(torch.equal(one, other) for one, other in zip(parts(donor), parts(receiver), strict=True))
    kept = [receiver.optimizer.state[parameter] for parameter in receiver.model.parameters()]
    assert [float(each["step"]) for each in kept] == [3.0] * 4
    assert all(isinstance(each["exp_avg"], DTensor) for each in kept)
    for parameter in receiver.model.parameters():
        parameter.grad = torch.ones_like(parameter)
    receiver.optimizer.step()


class Average:
    """A moving average of the parameters, kept as torch clones them."""

    def __init__(self, model: nn.Module) -> None:
        self.shadow = {name: parameter.detach().clone() for name, parameter in model.named_parameters()}

    @torch.no_grad()
    def update(self, model: nn.Module) -> None:
        for name, parameter in model.named_parameters():
            self.shadow[name].lerp_(parameter, 0.5)

    def state_dict(self) -> dict[str, Any]:
        return {"shadow": self.shadow}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.shadow = state["shadow"]


@pytest.mark.parametrize("by", ["a repeated step", "a newcomer"])
def test_sharded_tensors_in_an_added_state_come_back_as_sharded_tensors(group: Group, by: str) -> None:
    group.open_alone(rank=2, world_size=4)
    one, other = made(updates=1), made(updates=2)
    averages = [Average(one.model), Average(other.model)]
    for state, average in zip((one, other), averages, strict=True):
        state.added["average"] = average
    before = [local(part).clone() for part in averages[0].shadow.values()]

    if by == "a newcomer":
        other.load(one.flat())
        other.reach_boundary()
    else:
        one.begin(0)
        averages[0].update(one.model)
        one.put_back()
    got = averages[1 if by == "a newcomer" else 0]

    assert all(map(torch.equal, before, map(local, got.shadow.values())))
    assert {type(part) for part in got.shadow.values()} == {DTensor}
    got.update(one.model)


@pytest.mark.parametrize(
    ("shape", "names", "twins", "data"),
    [
        ((4,), ("shard",), {}, [(0, 4), (1, 4), (2, 4), (3, 4)]),
        ((2, 2), ("replicate", "shard"), {0: 2, 1: 3}, [(0, 4), (1, 4), (2, 4), (3, 4)]),
        ((2, 2), ("shard", "tp"), {}, [(0, 2), (0, 2), (1, 2), (1, 2)]),
        ((2, 2), ("replicate", "tp"), {0: 2, 1: 3}, [(0, 2), (0, 2), (1, 2), (1, 2)]),
    ],
)
def test_twins_are_ranks_with_the_same_part_and_data_is_divided_among_those_of_a_layer(
    group: Group, shape: tuple[int, ...], names: tuple[str, ...], twins: dict[int, int], data: list[tuple[int, int]]
) -> None:
    from torch.distributed._composable.replicate_with_fsdp import replicate
    from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

    found = []
    for rank in range(4):
        group.open_alone(rank=rank, world_size=4)
        # Torch takes meshes that are equal for each other, and here they are of several ranks of one process.
        own = {name: f"{name} of {rank}" for name in names}
        mesh = dist.init_device_mesh("cpu", shape, mesh_dim_names=tuple(own.values()))
        model = nn.Sequential(nn.Linear(4, 8), nn.Linear(8, 4))
        if "tp" in names:
            parallelize_module(model, mesh[own["tp"]], {"0": ColwiseParallel(), "1": RowwiseParallel()})
        dims = tuple(own[name] for name in names if name != "tp")
        (fully_shard if "shard" in names else replicate)(model, mesh=mesh[dims] if len(dims) > 1 else mesh[dims[0]])
        found.append(Sharded(model, RecordedGroups()))
        group.close()

    same = {(a, b) for a in range(4) for b in range(a + 1, 4) if found[a].holds == found[b].holds}
    assert same == set(twins.items())
    assert [each.data_place for each in found] == data


def test_a_step_that_was_tried_leaves_nothing_but_parameters_that_are_replaced(group: Group) -> None:
    group.open_alone(rank=2, world_size=4)
    counted = Counted()
    torch.manual_seed(3)
    model = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8))
    fully_shard(model)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.1)
    state = TrainingState(model, optimizer, scheduler=None, added={"counted": counted})
    before = [buffer.clone() for buffer in model.buffers()]

    state.begin(0)
    model(torch.ones(2, 4)).sum().backward()
    counted.value = 7
    optimizer.step()
    assert not all(torch.equal(one, other) for one, other in zip(before, model.buffers(), strict=True))
    state.forget()

    assert all(torch.equal(one, other) for one, other in zip(before, model.buffers(), strict=True))
    assert (counted.value, dict(optimizer.state)) == (0, {})
    assert all(parameter.grad is None for parameter in model.parameters())


class Counted:
    def __init__(self) -> None:
        self.value = 0

    def state_dict(self) -> dict[str, int]:
        return {"value": self.value}

    def load_state_dict(self, state: dict[str, int]) -> None:
        self.value = state["value"]
