"""The code of a program behind a collective that was left: found, and judged by what it may change."""

import importlib.util
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType, TracebackType
from typing import Any

import pytest
from torch import nn

from holdfast_runtime.inprocess import behind

HEAD = """
import contextlib
import numpy as np
import torch
draws = torch.Generator()
model = torch.nn.Linear(1, 1)
scheduler, history = object(), []
@contextlib.contextmanager
def swapped():
    weight = model.weight.detach().clone()
    yield
    model.weight.data.copy_(weight)
@contextlib.contextmanager
def swapped_back():
    weight = model.weight.detach().clone()
    try:
        yield
    finally:
        model.weight.data.copy_(weight)
def mean(value): lost(); return value
@torch.no_grad()
def validate():
    model.eval()
    total = mean(model(torch.ones(1, 1)))
    model.train()
    return total.item()
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first = torch.nn.Linear(1, 1)
    def forward(self, values):
        found = mean(self.first(values))
        return self.first(found)
net = Net()
def total_of(values):
    found = 0.0
    for value in values:
        found += torch.nn.functional.mse_loss(model(value), value)
        found = mean(found)
    return found
def train(step, best=1, counter=0, after=0):
    with step:
        {body}
    if step.found is None: print(later)
"""
CASES: dict[str, tuple[str, str]] = {
    "the last statement": ("mean(1)", ""),
    "an evaluation": ("validate()", ""),
    "a forward": ("with torch.no_grad():\n            print(net(torch.ones(1, 1)))", ""),
    "a log line": ("validate(); print('done')", ""),
    "an evaluation in a loop": ("total_of([torch.ones(1, 1)] * 3)", ""),
    "a mode": ("mean(1); model.train()", ""),
    "a finally": ("try:\n            mean(1)\n        finally:\n            history.append(1)", ""),
    "a manager with finally": ("with swapped_back():\n            validate()", ""),
    "a manager without finally": ("with swapped():\n            validate()", "with swapped():"),
    "a clamp": ("mean(1); model.weight.data.clamp_(-1, 1)", "mean(1); model.weight.data.clamp_(-1, 1)"),
    "a scheduler": ("mean(1)\n        scheduler.step()", "scheduler.step()"),
    "a value that is used later": ("later = validate()", "later = validate()"),
    "a value of this step": ("value = 1\n        value = mean(value)\n        print(value)", ""),
    "a value that the next step reads": ("print(after)\n        after = mean(1)", "after = mean(1)"),
    "the best value so far": (
        "value = mean(1)\n        if value < best:\n            best = value",
        "if value < best:",
    ),
    "a list of the program": ("history.append(validate())", "history.append(validate())"),
    "data of a generator of its own": (
        "validate(); mean(torch.rand(2, generator=torch.Generator().manual_seed(3)))\n        torch.rand(2)",
        "",
    ),
    "a generator of NumPy of its own": ("mean(1)\n        np.random.default_rng(3).normal(size=2)", ""),
    "a generator of the program": ("mean(1)\n        draws.manual_seed(3)", "draws.manual_seed(3)"),
    "the seed of all": ("mean(1)\n        torch.manual_seed(3)", "torch.manual_seed(3)"),
    "a counter": ("mean(1)\n        counter += 1", "counter += 1"),
    "a branch": ("mean(1)\n        if model.training:\n            scheduler.step()", "if model.training:"),
    "an attribute": ("mean(1)\n        model.rate = 1", "model.rate = 1"),
    "a file": ("mean(1)\n        torch.save({{}}, 'x')", "torch.save({}, 'x')"),
}


class LostError(RuntimeError):
    pass


class Step:
    """Notes what the exception that leaves it kept from running."""

    def __init__(self) -> None:
        self.found: Any = None

    def __enter__(self) -> "Step":
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: TracebackType | None) -> bool:
        assert isinstance(error, LostError), error
        self.found = behind(error, self)
        return True


@pytest.fixture
def load(tmp_path: Path) -> Callable[[str], ModuleType]:
    def load(body: str) -> ModuleType:
        path = tmp_path / "program.py"
        path.write_text(HEAD.replace("{body}", body.replace("{{", "{").replace("}}", "}")))
        spec = importlib.util.spec_from_file_location("program", path)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        module.lost = lose  # type: ignore[attr-defined]
        spec.loader.exec_module(module)
        return module

    return load


def lose() -> None:
    raise LostError


@pytest.mark.parametrize(("body", "statement"), CASES.values(), ids=CASES)
def test_the_first_statement_of_consequence_is_named(
    body: str, statement: str, load: Callable[[str], ModuleType]
) -> None:
    step = Step()

    load(body).train(step)

    assert step.found.statement.partition(": ")[2] == statement


def test_modes_that_would_have_been_set_are_calls_to_make_up_for(load: Callable[[str], ModuleType]) -> None:
    step, program = Step(), load("validate()")
    program.train(step)
    model = program.model
    assert isinstance(model, nn.Module)
    assert not model.training

    for call in step.found.modes:
        call()

    assert model.training


def test_a_program_without_source_has_something_behind(tmp_path: Path) -> None:
    names: dict[str, Any] = {"lost": lose, "step": (step := Step())}
    exec(compile("with step:\n    lost()\n", str(tmp_path / "gone.py"), "exec"), names)

    assert "its source cannot be read" in step.found.statement
    assert "program" not in sys.modules
