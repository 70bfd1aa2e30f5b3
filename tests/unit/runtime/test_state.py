"""Each kind of state that a loop changes around a step: where the step begins again, at a newcomer, in a snapshot."""

import io
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.optim import lr_scheduler

from holdfast_runtime.inprocess import DivergenceError, TrainingState, packed_values
from holdfast_runtime.snapshots import Block, Label, Layout
from holdfast_runtime.transfer import Flat, read_skeleton


class Average:
    """In ``state=``."""

    def __init__(self) -> None:
        self.values, self.count = torch.zeros(3), 0

    def state_dict(self) -> dict[str, Any]:
        return {"values": self.values, "count": self.count}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.values.copy_(state["values"])
        self.count = state["count"]


class Metric(nn.Module):
    """In ``state=``. As metrics of libraries are: ``state_dict()`` has nothing of it."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("total", torch.zeros(2), persistent=False)
        self.seen = torch.zeros(2)
        self.updates, self.kept = 0, list[float]()


class Module(nn.Module):
    mean: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.layer, self.drop = nn.Linear(2, 2), nn.Dropout(0.1)
        self.register_buffer("mean", torch.zeros(2))
        self.scale, self.history = 1.0, [0]
        self.hidden = 0

    def get_extra_state(self) -> dict[str, int]:
        return {"hidden": self.hidden}

    def set_extra_state(self, state: dict[str, int]) -> None:
        self.hidden = state["hidden"]


class Optimizer(torch.optim.SGD):
    """One with a count of its own, a schedule, a generator and a tensor that torch does not know."""

    def __init__(self, *given: Any, **options: Any) -> None:
        super().__init__(*given, **options)
        self.iterations, self.rates = 0, [0.1]
        self.noise, self.norm = torch.Generator().manual_seed(3), torch.zeros(2)


class Program:
    """What a script makes; the scheduler in ``found`` is given to nobody."""

    def __init__(self) -> None:
        torch.manual_seed(1)
        self.model = Module()
        self.optimizer = Optimizer(self.model.parameters(), lr=0.1, momentum=0.9)
        self.scheduler = lr_scheduler.ConstantLR(self.optimizer)
        self.found = lr_scheduler.StepLR(self.optimizer, 3)
        self.average, self.metric = Average(), Metric()
        self.noise = np.random.default_rng(1)
        self.state = TrainingState(
            self.model,
            self.optimizer,
            scheduler=self.scheduler,
            added={"average": self.average, "metric": self.metric, "noise": self.noise},
        )

    def facts(self) -> list[Any]:
        model, group = self.model, self.optimizer.param_groups[0]
        return [
            *(model.training, model.drop.training, model.drop.p, model.scale, list(model.history), model.hidden),
            *(model.mean.tolist(), model.layer.weight.requires_grad, model.layer.weight.tolist()),
            *(group["lr"], group["weight_decay"], self.scheduler.last_epoch, self.found.last_epoch),
            *(self.average.values.tolist(), self.average.count, torch.get_default_dtype(), torch.is_grad_enabled()),
            {name: buffer is None for name, buffer in model._buffers.items()},
            {*model._non_persistent_buffers_set},
            *(self.optimizer.iterations, [*self.optimizer.rates], self.optimizer.norm.tolist()),
            getattr(self.optimizer, "late", None),
            self.optimizer.noise.get_state().tolist(),
            *(self.metric.total.tolist(), self.metric.seen.tolist(), self.metric.updates, [*self.metric.kept]),
            self.noise.bit_generator.state,
        ]


CHANGES: dict[str, Callable[[Program], object]] = {
    "modes": lambda it: it.model.eval(),
    "a rate": lambda it: setattr(it.model.drop, "p", 0.5),
    "an attribute": lambda it: setattr(it.model, "scale", 2.0),
    "a list": lambda it: it.model.history.append(1),
    "extra state": lambda it: setattr(it.model, "hidden", 1),
    "a buffer": lambda it: it.model.mean.data.add_(1),
    "a buffer that holds nothing": lambda it: it.model.register_buffer("nothing", None),
    "a buffer that comes later": lambda it: it.model.register_buffer("late", torch.ones(2)),
    "a buffer that checkpoints leave out": lambda it: it.model.register_buffer("late", torch.ones(2), persistent=False),
    "frozen parameters": lambda it: it.model.layer.requires_grad_(False),
    "a learning rate": lambda it: it.optimizer.param_groups[0].update(lr=0.01),
    "a weight decay": lambda it: it.optimizer.param_groups[0].update(weight_decay=0.5),
    "a count of the optimizer": lambda it: setattr(it.optimizer, "iterations", 5),
    "a list of the optimizer": lambda it: it.optimizer.rates.append(0.2),
    "a tensor of the optimizer that is no moment": lambda it: it.optimizer.norm.add_(1),
    "an attribute of the optimizer that comes later": lambda it: setattr(it.optimizer, "late", 1.0),
    "a generator of the optimizer": lambda it: torch.rand(2, generator=it.optimizer.noise),
    "the scheduler of Run": lambda it: setattr(it.scheduler, "last_epoch", 7),
    "a scheduler that is found": lambda it: setattr(it.found, "last_epoch", 7),
    "a tensor of state=": lambda it: it.average.values.data.add_(1),
    "a number of state=": lambda it: setattr(it.average, "count", 1),
    "a buffer of a module in state= that checkpoints leave out": lambda it: it.metric.total.add_(1),
    "a tensor of a module in state=": lambda it: it.metric.seen.add_(1),
    "a number of a module in state=": lambda it: setattr(it.metric, "updates", 1),
    "a list of a module in state=": lambda it: it.metric.kept.append(0.5),
    "a generator in state=": lambda it: it.noise.random(),
    "the default type": lambda _: torch.set_default_dtype(torch.float64),
    "the grad mode": lambda _: torch._C._set_grad_enabled(False),
    "parameters": lambda it: it.model.layer.weight.data.add_(1),
}
KINDS = pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)


@pytest.fixture(autouse=True)
def _settings() -> Any:
    yield
    torch.set_default_dtype(torch.float32)
    torch._C._set_grad_enabled(True)


@pytest.mark.parametrize("name", ["modes", "a rate", "an attribute", "a list", "extra state"])
def test_a_value_that_a_later_step_changes_is_seen_in_the_vote_of_that_step(name: str) -> None:
    it = Program()
    it.state.reach_boundary()

    def facts() -> dict[Any, Any]:
        return it.state.facts(whole=False, model="attributes", added=False)

    before = facts()
    CHANGES[name](it)

    assert facts() != before


@pytest.mark.parametrize("whole", [True, False])
def test_ranks_of_a_pipeline_have_nothing_to_compare_in_a_vote(whole: bool) -> None:
    it = Program()
    it.state.reach_boundary()

    assert not any(it.state.facts(whole=whole, model="", added=False).values())


@KINDS
def test_a_step_begins_again_as_it_began_first(change: Callable[[Program], object]) -> None:
    it = Program()
    it.state.reach_boundary()
    it.state.begin(3)
    before = it.facts()
    it.state.put_back()  # the step was left: from here on there are copies of parameters

    change(it)  # the loop's body
    assert it.facts() != before
    it.state.reach_boundary()
    it.state.begin(3)

    assert it.facts() == before


def test_a_buffer_that_a_left_step_has_filled_holds_nothing_again() -> None:
    it = Program()
    it.model.register_buffer("nothing", None)
    it.state.reach_boundary()
    it.state.begin(3)
    it.model.nothing = torch.ones(2)

    it.state.put_back()

    assert it.model.nothing is None
    it.model.nothing = torch.ones(2)
    assert "nothing" in it.model.state_dict()


@KINDS
def test_nothing_of_a_committed_step_is_put_back(change: Callable[[Program], object]) -> None:
    it = Program()
    it.state.reach_boundary()
    it.state.begin(3)
    change(it)
    it.state.committed()
    after = it.facts()

    it.state.reach_boundary()
    it.state.begin(4)

    assert it.facts() == after


def test_a_buffer_that_a_left_step_has_deleted_stays_out_of_checkpoints() -> None:
    it = Program()
    it.model.register_buffer("cache", torch.ones(2), persistent=False)
    it.state.reach_boundary()
    it.state.begin(3)
    del it.model.cache

    it.state.put_back()

    assert it.model.cache.tolist() == [1, 1]
    assert "cache" not in it.model.state_dict()


def run_before_the_first_step(it: Program) -> None:
    """As scripts do between Run and the loop, and a spare does behind the step that it tries."""
    it.model.train()
    it.optimizer.param_groups[0]["lr"] = 0.3
    it.optimizer.iterations = 1
    it.optimizer.early = 1.0  # type: ignore[attr-defined]
    it.average.count = 9
    it.model.register_buffer("early", torch.ones(2))
    with torch.no_grad():
        it.model.layer.weight.add_(5)
        it.model.mean.add_(5)


def sent(flat: Flat) -> Flat:
    return Flat(skeleton=read_skeleton(flat.skeleton_bytes), tensors=[tensor.clone() for tensor in flat.tensors])


@KINDS
@pytest.mark.parametrize("begun", [False, True], ids=["between two steps", "in a step that was left"])
def test_a_newcomer_begins_as_the_others_whatever_its_script_does_before(
    change: Callable[[Program], object], begun: bool
) -> None:
    donor, newcomer = Program(), Program()
    donor.state.reach_boundary()
    change(donor)
    if begun:
        donor.state.begin(3)
        donor.state.put_back()
    flat = sent(donor.state.flat())
    torch.set_default_dtype(torch.float32)
    torch._C._set_grad_enabled(True)

    newcomer.state.load(flat)
    run_before_the_first_step(newcomer)
    newcomer.state.reach_boundary()
    if begun:
        newcomer.average.count = 8  # what stands before `with step:`
        newcomer.state.begin(3)
        donor.state.begin(3)

    assert newcomer.facts()[:15] == donor.facts()[:15]
    assert newcomer.facts()[15:] == donor.facts()[15:]


def packed(state: TrainingState) -> Block:
    """A snapshot."""
    shard, block = state.shard(), Block()
    extra, _ = shard.pack()
    tensors = shard.tensors()
    layout = Layout.of(tensors)
    block.clear(layout.size)
    for entry in layout.entries:
        entry.of(block.data).copy_(tensors[entry.name])
    block.label = Label(0, 3, layout, block.checksums(), extra)
    return block


def test_a_buffer_or_an_attribute_that_came_after_a_snapshot_is_gone_when_that_is_loaded() -> None:
    it = Program()
    it.model.register_buffer("nothing", None)
    it.state.reach_boundary()
    block = packed(it.state)
    it.model.register_buffer("late", torch.ones(2))
    it.model.nothing = torch.ones(2)
    it.optimizer.late = 1.0  # type: ignore[attr-defined]

    it.state.shard().load(block)
    it.state.reach_boundary()

    assert it.model.nothing is None
    assert not hasattr(it.model, "late")
    assert not hasattr(it.optimizer, "late")


@KINDS
def test_a_snapshot_has_it(change: Callable[[Program], object]) -> None:
    donor, receiver = Program(), Program()
    donor.state.reach_boundary()
    receiver.state.reach_boundary()
    change(donor)
    after = donor.facts()
    block = packed(donor.state)
    torch.set_default_dtype(torch.float32)
    torch._C._set_grad_enabled(True)

    receiver.state.shard().load(block)
    receiver.state.reach_boundary()

    assert receiver.facts() == after


@KINDS
def test_what_was_received_and_is_not_in_use_yet_is_passed_on(change: Callable[[Program], object]) -> None:
    donor, between, last = Program(), Program(), Program()
    donor.state.reach_boundary()
    change(donor)
    after = donor.facts()
    flat = sent(donor.state.flat())
    torch.set_default_dtype(torch.float32)
    torch._C._set_grad_enabled(True)

    between.state.load(flat)
    run_before_the_first_step(between)
    last.state.load(sent(between.state.flat()))
    last.state.reach_boundary()

    assert last.facts() == after


def test_a_buffer_of_a_rank_s_own_goes_to_the_rank_that_it_is_of() -> None:
    donor, lost, newcomer = Program(), Program(), Program()
    for number, it in enumerate((donor, lost)):
        it.state.reach_boundary()
        it.state.begin(3)
        it.model.mean.fill_(number + 1.0)
        it.state.note_own_buffers(["mean"])
    donor.state.keep_of_ranks(4, [packed_values(it.state.own_values()) for it in (donor, lost)])
    donor.state.committed()

    newcomer.state.load(sent(donor.state.flat()), rank=1)

    assert newcomer.model.mean.tolist() == [2.0, 2.0]
    assert newcomer.state.shared_buffers() == {}


@pytest.mark.parametrize("lost_has", [True, False], ids=["of the lost rank", "of the donor"])
def test_an_attribute_that_only_one_rank_has_changed_is_that_rank_s(lost_has: bool) -> None:
    donor, lost, newcomer = Program(), Program(), Program()
    for it in (donor, lost):
        it.state.reach_boundary()
        it.state.begin(3)
        it.state.by_rank |= {"model.drop.training", "model.history[0]", "model.history[1]"}
    changed = lost if lost_has else donor
    changed.model.drop.eval()
    changed.model.history.append(7)
    donor.state.keep_of_ranks(4, [packed_values(it.state.own_values()) for it in (donor, lost)])
    donor.state.committed()

    newcomer.state.load(sent(donor.state.flat()), rank=1)
    newcomer.state.reach_boundary()

    assert newcomer.model.drop.training is not lost_has
    assert newcomer.model.history == ([0, 7] if lost_has else [0])


def test_a_buffer_of_a_rank_s_own_that_nobody_keeps_is_refused() -> None:
    donor, newcomer = Program(), Program()
    donor.state.reach_boundary()
    donor.state.note_own_buffers(["mean"])

    with pytest.raises(DivergenceError, match=r"buffers.mean differs by rank, and the value of rank 1 was lost"):
        newcomer.state.load(sent(donor.state.flat()), rank=1)


def test_values_of_a_rank_that_are_more_than_others_hold_are_named_as_that() -> None:
    donor, newcomer = Program(), Program()
    donor.state.reach_boundary()
    donor.state.by_rank |= {"state.average.values"}
    donor.average.values = torch.zeros(1_000_000)
    donor.state.keep_of_ranks(0, [packed_values(donor.state.own_values())] * 2)

    with pytest.raises(DivergenceError, match=r"state.average.values differs by rank.*at most 1 MiB.*or smaller"):
        newcomer.state.load(sent(donor.state.flat()), rank=1)


def test_values_of_other_ranks_are_read_only_where_a_rank_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    it = Program()
    it.state.reach_boundary()
    it.state.note_own_buffers(["mean"])
    data = packed_values(it.state.own_values())
    monkeypatch.setattr(torch, "load", lambda *_, **__: pytest.fail("read in a vote"))

    it.state.keep_of_ranks(1, [data, data])


def test_tensors_of_state_are_in_the_block_of_a_snapshot_and_not_in_its_header() -> None:
    it = Program()
    it.average.values = torch.zeros(1_000_000)
    extra, tensors = it.state.shard().pack()

    assert len(extra) < 20_000
    assert any(tensor.numel() == 1_000_000 for tensor in tensors.values())


def test_a_parameter_that_a_step_has_changed_is_named_until_there_are_copies() -> None:
    it = Program()
    it.state.reach_boundary()
    it.state.begin(0)
    with torch.no_grad():
        it.model.layer.weight.add_(1)
    assert it.state.changed_parameter() == "layer.weight"

    it.state.before_update()
    it.state.committed()
    it.state.begin(1)
    before = it.facts()
    with torch.no_grad():
        it.model.layer.weight.add_(1)

    assert it.state.changed_parameter() == ""
    it.state.put_back()
    assert it.facts() == before


def test_an_optimizer_that_a_newcomer_s_script_loads_again_is_refused() -> None:
    donor, newcomer = Program(), Program()
    for each in (donor, newcomer):
        for parameter in each.model.parameters():
            parameter.grad = torch.ones_like(parameter)
        each.optimizer.step()
    donor.state.reach_boundary()
    newcomer.state.load(sent(donor.state.flat()))

    newcomer.optimizer.load_state_dict(newcomer.optimizer.state_dict())
    newcomer.optimizer.state[newcomer.model.layer.weight]["momentum_buffer"].add_(1)

    with pytest.raises(DivergenceError, match="the optimizer's state was changed in place in front of the first step"):
        newcomer.state.reach_boundary()


def test_an_optimizer_that_a_newcomer_s_script_clears_in_front_of_its_loop_has_the_received_state() -> None:
    donor, newcomer, last = Program(), Program(), Program()
    for parameter in donor.model.parameters():
        parameter.grad = torch.ones_like(parameter)
    donor.optimizer.step()
    donor.state.reach_boundary()
    newcomer.state.load(sent(donor.state.flat()))

    newcomer.optimizer.state.clear()
    last.state.load(sent(newcomer.state.flat()))
    newcomer.state.reach_boundary()
    last.state.reach_boundary()

    for each in (newcomer, last):
        assert each.optimizer.state_dict()["state"].keys() == {0, 1}
        kept = each.optimizer.state[each.model.layer.weight]["momentum_buffer"]
        assert torch.equal(kept, donor.optimizer.state[donor.model.layer.weight]["momentum_buffer"])


def test_groups_that_come_later_travel_by_the_names_of_their_parameters() -> None:
    donor, newcomer = Program(), Program()
    for each in (donor, newcomer):
        each.optimizer.param_groups[0]["params"] = [each.model.layer.weight]
    donor.state.reach_boundary()
    donor.optimizer.add_param_group({"params": [donor.model.layer.bias], "lr": 0.7})

    newcomer.state.load(sent(donor.state.flat()))

    assert [group["lr"] for group in newcomer.optimizer.param_groups][1] == 0.7
    assert newcomer.optimizer.param_groups[1]["params"] == [newcomer.model.layer.bias]


def test_a_scaler_of_gradients_begins_a_step_that_was_left_as_the_first_time() -> None:
    model = nn.Linear(2, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scaler = torch.amp.GradScaler("cpu")
    state = TrainingState(model, optimizer, scheduler=None, added={"scaler": scaler})
    state.reach_boundary()
    state.begin(3)
    scaler.scale(model(torch.full((1, 2), torch.inf)).sum()).backward()
    scaler.unscale_(optimizer)

    state.put_back()

    scaler.unscale_(optimizer)
    scaler.update()
    assert scaler.get_scale() == 2.0**15


def test_a_scaler_that_is_disabled_begins_a_step_that_was_left_again() -> None:
    model = nn.Linear(2, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scaler = torch.amp.GradScaler("cpu", enabled=False)
    state = TrainingState(model, optimizer, scheduler=None, added={"scaler": scaler})
    state.reach_boundary()
    state.begin(3)

    state.begin(3)

    assert scaler.get_scale() == 1.0


def test_a_step_begins_without_casts_of_older_parameters() -> None:
    it, values = Program(), torch.ones(1, 2)
    it.state.reach_boundary()
    torch.set_autocast_enabled("cpu", True)
    try:
        it.state.begin(3)
        it.model.layer(values)  # autocast without a block keeps its casts
        it.model.layer.weight.data.zero_()
        it.state.committed()
        it.state.begin(4)

        assert torch.equal(it.model.layer(values)[0], it.model.layer.bias.bfloat16())
    finally:
        torch.set_autocast_enabled("cpu", False)
        torch.clear_autocast_cache()


def test_a_group_that_came_after_a_snapshot_is_gone_with_its_state_when_that_is_loaded() -> None:
    model = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))
    optimizer = torch.optim.AdamW(model[0].parameters(), lr=0.1)
    state = TrainingState(model, optimizer, scheduler=None, added={})
    state.reach_boundary()
    model(torch.ones(1, 2)).sum().backward()
    optimizer.step()
    block = packed(state)
    optimizer.add_param_group({"params": [*model[1].parameters()]})
    optimizer.step()

    state.shard().load(block)

    assert len(optimizer.state_dict()["state"]) == 2
    assert {*optimizer.state} == {*model[0].parameters()}


def test_a_group_with_a_parameter_of_no_module_is_refused_in_its_step() -> None:
    it = Program()
    it.state.check_structure()
    it.optimizer.add_param_group({"params": [nn.Parameter(torch.ones(3))]})

    with pytest.raises(ValueError, match=r"param_groups\[1\] has a parameter of shape \(3,\) that is not a parameter"):
        it.state.check_structure()


def test_a_layer_that_is_thawed_is_refused_where_its_gradients_would_not_be_added_up() -> None:
    program = Program()
    program.model.layer.requires_grad_(False)
    state = TrainingState(program.model, program.optimizer, scheduler=None, added={})
    state.reduces = True
    state.check_structure()
    program.model.layer.requires_grad_(True)

    with pytest.raises(ValueError, match=r"layer.weight has requires_grad now, and had not when Run was made"):
        state.check_structure()


def test_what_is_packed_is_read_without_executing_anything() -> None:
    extra, _ = Program().state.shard().pack()
    assert torch.load(io.BytesIO(extra), weights_only=True)["extra"]["training"]["begun"] is False
