"""Groups that come back under their names, and who holds the old ones. One rank, gloo and torch's fake backend."""

import gc
import threading
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
import torch.distributed as dist
import torch.distributed.checkpoint.state_dict_saver as dcp
from torch import nn

from holdfast_runtime import groups
from holdfast_runtime.groups import Group, RecordedGroups, UnsupportedError, check_version, holders


@pytest.fixture
def group(monkeypatch: pytest.MonkeyPatch) -> Iterator[Group]:
    monkeypatch.setattr(groups.private.c10d, "_new_group_with_tag", groups.private.c10d._new_group_with_tag)
    recorded = RecordedGroups()
    recorded.watch()
    recorded.wait_s = 20.0
    made = Group(backend="gloo", recorded=recorded)
    yield made
    made.close()


def opened(group: Group) -> None:
    group.open(store=dist.HashStore(), rank=0, world_size=1, deadline_s=20.0)


def closed(group: Group) -> list[str]:
    """Who holds what has ended."""
    found: list[str] = []
    group.close(look=lambda ended: found.extend(holders(ended)))
    return found


def test_groups_come_back_under_the_names_that_they_had(group: Group) -> None:
    opened(group)
    names = [dist.new_group([0]).group_name, dist.new_group([0], timeout=timedelta(seconds=3)).group_name]
    assert closed(group) == []

    opened(group)

    for name in names:
        again = groups.private.c10d._resolve_process_group(name)
        assert groups.private.name_of(again) == name
        assert dist.get_process_group_ranks(again) == [0]
        # torch would take half an hour for these, whatever the default group has
        assert again._get_backend(torch.device("cpu")).options._timeout == timedelta(seconds=20)
    assert dist.new_group([0]).group_name == "3", "the next one goes on counting"


def test_a_group_that_is_made_after_the_first_step_is_refused_and_those_before_it_come_back(group: Group) -> None:
    opened(group)
    name = dist.new_group([0]).group_name
    assert group._recorded is not None
    group._recorded.is_whole = True

    with pytest.raises(UnsupportedError, match=r"made after the first step.* a DeviceMesh before Run"):
        dist.new_group([0])

    group.close()
    opened(group)
    assert groups.private.name_of(groups.private.c10d._resolve_process_group(name)) == name


def test_a_newcomer_makes_alone_what_the_others_have(group: Group) -> None:
    group.open_alone(rank=2, world_size=4)
    mesh = dist.init_device_mesh("cpu", (2, 2), mesh_dim_names=("replicate", "shard"))

    assert mesh.get_coordinate() == (1, 0)
    assert mesh["shard"].get_group().group_name == "4"
    assert group._recorded is not None
    assert group._recorded.labels() == [
        f"group {number} of ranks {ranks}" for number, ranks in enumerate(([0, 2], [1, 3], [0, 1], [2, 3]), start=1)
    ]
    del mesh
    gc.collect()
    assert closed(group) == []


def test_a_checkpoint_that_a_program_writes_beside_its_steps_with_other_ranks_is_refused_with_the_way(
    group: Group, tmp_path: Path
) -> None:
    groups.private.refuse_async_saves()
    group.open_alone(rank=0, world_size=2)
    with pytest.raises(UnsupportedError, match=r"give Run\(checkpoint=Checkpoints\(folder\), checkpoint_every=N\)"):
        dcp.async_save({"weight": torch.ones(2)}, checkpoint_id=tmp_path)

    assert not any(tmp_path.iterdir())


def test_the_digest_is_of_the_groups_and_their_order(monkeypatch: pytest.MonkeyPatch) -> None:
    real = groups.private.c10d._new_group_with_tag

    def digest(*made: list[int]) -> str:
        monkeypatch.setattr(groups.private.c10d, "_new_group_with_tag", real)
        recorded = RecordedGroups()
        recorded.watch()
        group = Group(backend="gloo", recorded=recorded)
        group.open_alone(rank=0, world_size=4)
        for ranks in made:
            dist.new_group(ranks)
        group.close()
        return recorded.digest()

    assert digest([0, 1], [2, 3]) == digest([1, 0], [2, 3])
    assert len({digest([0, 1], [2, 3]), digest([2, 3], [0, 1]), digest([0, 1]), digest()}) == 4


class Keeper:
    """Of the script; it has the group of its mesh and not its mesh."""

    def __init__(self, held: Any) -> None:
        self.line = held
        self.seen: list[int] = []  # Python 3.10's collector does not know a dict whose values it does not know


kept_here: Any = None


def in_attribute(held: Any) -> Any:
    return Keeper(held)


def in_closure(held: Any) -> Any:
    def reduce(value: torch.Tensor) -> None:
        dist.all_reduce(value, group=held)

    return reduce


def in_global(held: Any) -> Any:
    global kept_here
    kept_here = held


def in_default(held: Any) -> Any:
    def reduce(value: torch.Tensor, group: Any = held) -> None:
        dist.all_reduce(value, group=group)

    return reduce


def in_thread(held: Any) -> Any:
    there, end = threading.Event(), threading.Event()

    def watch(line: Any) -> None:
        there.set()
        end.wait(30.0)
        del line

    threading.Thread(target=watch, args=(held,), name="tracker", daemon=True).start()
    there.wait(30.0)
    return end.set


@pytest.mark.parametrize(
    ("plant", "named"),
    [
        (in_attribute, f"attribute 'line' of a {__name__}.Keeper"),
        (in_closure, "the closure of in_closure.<locals>.reduce"),
        (in_global, f"global 'kept_here' of module {__name__}"),
        (in_default, "a default argument of in_default.<locals>.reduce"),
        (in_thread, "local variable 'line' of watch"),
    ],
)
def test_whoever_holds_an_old_group_is_named(
    group: Group, monkeypatch: pytest.MonkeyPatch, plant: Callable[[Any], Any], named: str
) -> None:
    global kept_here
    if plant is not in_global:  # what is looked for is new, and all that other tests have loaded is not searched
        monkeypatch.setattr("gc.unfreeze", lambda: None)
    opened(group)
    planted = plant(dist.new_group([0]))
    gc.collect()  # from then on it knows no tuple of a group alone, and since Python 3.14 it knows none anyway

    try:
        found = closed(group)
    finally:
        kept_here = None
        if plant is in_thread:
            planted()
            assert any("in thread tracker" in text for text in found)
    assert any(text.startswith(named) for text in found), found


def test_a_version_of_torch_that_nobody_has_tested_is_refused() -> None:
    check_version("2.13.1+cu130")
    with pytest.raises(UnsupportedError, match=r"torch is 2.15.0; sharded jobs go on in place with 2.13.x, 2.14.x"):
        check_version("2.15.0")


class Breaks(torch.autograd.Function):
    """A backward that breaks after some layers have had theirs."""

    broken = True

    @staticmethod
    def forward(_context: Any, value: torch.Tensor) -> torch.Tensor:
        return value.view_as(value)

    @staticmethod
    def backward(_context: Any, gradient: torch.Tensor) -> torch.Tensor:  # type: ignore[override]
        if Breaks.broken:
            raise ConnectionError("a peer is gone")
        return gradient


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.last = nn.Linear(4, 4), nn.Linear(4, 4)

    def forward(self, value: torch.Tensor) -> torch.Tensor:
        return self.last(Breaks.apply(self.first(value)))  # type: ignore[no-any-return,no-untyped-call]


@pytest.mark.parametrize("cleared", [True, False])
def test_gradients_of_a_broken_backward_are_forgotten(
    group: Group, monkeypatch: pytest.MonkeyPatch, *, cleared: bool
) -> None:
    """Without it the next step adds to them, in silence: that is what torch's own reset leaves."""
    from torch.distributed.fsdp import fully_shard

    if not cleared:
        monkeypatch.setattr(groups.private, "clear_unsharded", lambda _model: None)
    opened(group)
    torch.manual_seed(0)
    model = Net()
    fully_shard(model)
    batch = torch.randn(3, 4)

    def gradients(*, broken: bool) -> list[torch.Tensor]:
        Breaks.broken = broken
        for parameter in model.parameters():
            parameter.grad = None
        model(batch).square().sum().backward()
        return [parameter.grad.to_local().clone() for parameter in model.parameters()]  # type: ignore[union-attr]

    calm = gradients(broken=False)
    with pytest.raises(ConnectionError):
        gradients(broken=True)
    groups.private.reset_fsdp(model)
    again = gradients(broken=False)

    assert all(torch.equal(one, other) for one, other in zip(calm, again, strict=True)) is cleared
    groups.private.forget_fsdp(model)


def test_a_stage_gives_up_each_of_its_groups_and_one_with_a_group_for_each_direction_is_refused() -> None:
    held = object()
    stage = SimpleNamespace(group=held, _downstream_group=held, _upstream_group=held, p2p_per_direction=False)
    schedule = SimpleNamespace(_stage=stage)

    groups.private.forget_pipeline(schedule)

    assert held not in vars(stage).values()
    stage.p2p_per_direction = True
    with pytest.raises(UnsupportedError, match="unset TORCH_DISTRIBUTED_PIPELINE_PER_DIRECTION_P2P"):
        groups.private.group_names_of(schedule)
