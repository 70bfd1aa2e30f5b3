"""All of a model but its parameters' values: noted, restored, and sent as what has changed."""

import weakref
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn.utils import prune

from holdfast_runtime.state import ModelReader, StructureError

EXTRA: weakref.WeakKeyDictionary[nn.Module, int] = weakref.WeakKeyDictionary()
"""State of modules that is in none of their attributes."""


class Mean(nn.Module):
    """A module with state of every kind."""

    running: torch.Tensor

    def __init__(self) -> None:
        super().__init__()
        self.rate, self.seen, self.plain = 0.1, [1], torch.zeros(2)
        self.inner = nn.Linear(2, 2)
        self.register_buffer("running", torch.zeros(2))
        self.register_buffer("cache", torch.ones(2), persistent=False)
        EXTRA[self] = 1

    def get_extra_state(self) -> dict[str, int]:
        return {"extra": EXTRA[self]}

    def set_extra_state(self, state: dict[str, int]) -> None:
        EXTRA[self] = state["extra"]


def facts(model: Mean) -> list[Any]:
    return [
        *(model.training, model.rate, list(model.seen), model.plain.tolist(), EXTRA[model], model.inner.training),
        *(model.inner.weight.requires_grad, len(model.inner._forward_hooks), hasattr(model, "late")),
        {name: buffer.tolist() for name, buffer in model.named_buffers()},
    ]


CHANGES: dict[str, Callable[[Mean], object]] = {
    "mode": lambda model: model.eval(),
    "mode of a part": lambda model: model.inner.eval(),
    "rate": lambda model: setattr(model, "rate", 0.5),
    "list in place": lambda model: model.seen.append(2),
    "list replaced": lambda model: setattr(model, "seen", [3]),
    "tensor in place": lambda model: model.plain.add_(1),
    "tensor through data": lambda model: model.plain.data.add_(1),
    "tensor replaced": lambda model: setattr(model, "plain", torch.ones(2)),
    "frozen": lambda model: model.inner.requires_grad_(False),
    "buffer in place": lambda model: model.running.add_(1),
    "buffer through data": lambda model: model.running.data.add_(1),
    "buffer assigned": lambda model: setattr(model, "running", torch.ones(2)),
    "buffer grown": lambda model: setattr(model, "cache", torch.ones(4)),
    "buffer late": lambda model: model.register_buffer("mask", torch.ones(2)),
    "extra state": lambda model: EXTRA.update({model: 2}),
    "hook": lambda model: model.inner.register_forward_hook(lambda *_: None),
    "attribute late": lambda model: setattr(model, "late", 1),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_what_a_step_has_changed_is_as_it_was(change: Callable[[Mean], object]) -> None:
    model = Mean()
    reader = ModelReader(model)
    before, notes = facts(model), reader.note()
    running = model.running

    change(model)
    assert facts(model) != before
    reader.restore(notes)

    assert facts(model) == before
    assert model.running is running, "objects stay"


@pytest.mark.parametrize("name", [name for name in CHANGES if "buffer" not in name and name != "hook"])
def test_what_has_changed_since_the_first_step_is_sent(name: str) -> None:
    donor, newcomer = Mean(), Mean()
    reader, other = ModelReader(donor), ModelReader(newcomer)
    baseline, own = reader.note(), other.note()

    CHANGES[name](donor)
    other.apply(reader.changes(reader.note(), baseline), own)

    assert facts(newcomer) == facts(donor)


def test_what_has_not_changed_is_not_sent_so_that_each_rank_keeps_its_own() -> None:
    donor, newcomer = Mean(), Mean()
    donor.rate, newcomer.rate = 0.0, 1.0  # of rank 0 and of rank 1
    reader, other = ModelReader(donor), ModelReader(newcomer)
    baseline, own = reader.note(), other.note()

    donor.seen.append(2)
    other.apply(reader.changes(reader.note(), baseline), own)

    assert (newcomer.rate, newcomer.seen) == (1.0, [1, 2])


def first_hook(*_: object) -> None: ...


def later_hook(*_: object) -> None: ...


def test_a_hook_that_was_removed_is_there_again() -> None:
    model = Mean()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    handle = model.inner.register_forward_hook(first_hook)
    reader = ModelReader(model, optimizer)
    notes = reader.note()
    handle.remove()
    optimizer.register_step_pre_hook(later_hook)

    reader.restore(notes)

    assert len(model.inner._forward_hooks) == 1
    assert not optimizer._optimizer_step_pre_hooks
    assert reader.hook_names() == {"inner": ["forward_hooks first_hook"]}


def test_a_state_takes_the_hooks_away_that_it_has_not() -> None:
    """Registered by a step that is done again, or by a spare that has tried one."""
    donor, other = Mean(), Mean()
    for model in (donor, other):
        model.inner.register_forward_hook(first_hook)
        model.inner.weight.register_hook(first_hook)
    optimizer = torch.optim.SGD(other.parameters(), lr=0.1)
    readers = ModelReader(donor), ModelReader(other, optimizer)
    baselines = [reader.note() for reader in readers]
    taken = readers[0].changes(readers[0].note(), baselines[0])
    for hook in (first_hook, later_hook):
        other.inner.register_forward_hook(hook)
    other.inner.weight.register_hook(later_hook)
    other.register_forward_pre_hook(later_hook)
    optimizer.register_step_post_hook(later_hook)

    readers[1].apply(taken, baselines[1])

    assert readers[1].hook_names() == readers[0].hook_names() == taken["hooks"]
    assert [*other.inner._forward_hooks.values()] == [first_hook]


def test_a_hook_of_the_donor_that_is_missing_here_is_named() -> None:
    donor, newcomer = ModelReader(Mean()), ModelReader(Mean())
    baseline, own = donor.note(), newcomer.note()
    donor.model.inner.register_forward_hook(later_hook)  # type: ignore[union-attr]

    with pytest.raises(StructureError, match=r"hooks.inner: forward_hooks later_hook .* register them before Run"):
        newcomer.apply(donor.changes(donor.note(), baseline), own)


@pytest.mark.parametrize(
    "change",
    [
        lambda model: prune.l1_unstructured(model.inner, "weight", 0.5),
        lambda model: model.inner.register_parameter("more", nn.Parameter(torch.ones(1))),
        lambda model: model.add_module("more", nn.Linear(1, 1)),
    ],
    ids=["prune", "a parameter", "a module"],
)
def test_parameters_that_come_or_go_are_refused_by_name(change: Callable[[Mean], object]) -> None:
    model = Mean()
    reader = ModelReader(model)
    reader.check_structure()

    change(model)

    with pytest.raises(StructureError, match=r"has other parameters or parts than when Run was .*(more|weight_orig)"):
        reader.check_structure()


def test_an_attribute_of_a_kind_that_cannot_be_sent_is_named_where_its_kind_changes() -> None:
    model = Mean()
    reader = ModelReader(model)
    model.act = torch.relu  # type: ignore[assignment]
    baseline = reader.note()

    model.act = torch.tanh  # type: ignore[assignment]

    assert reader.unsent(reader.note(), baseline) == {"": {"act": "_VariableFunctionsClass.tanh"}}
