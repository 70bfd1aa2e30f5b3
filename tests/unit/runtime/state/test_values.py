"""Values that are part of training: copied, put back in place, named by path."""

import random
from collections import OrderedDict, deque
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch
from torch import nn

from holdfast_runtime.state import NotKeptError, copied, leaves, named, put_back, replaced, shown


class Pair(NamedTuple):
    one: int
    other: int


class Own:
    """An object of the program."""

    def __init__(self) -> None:
        self.count = 1
        self.weights = torch.ones(2)
        self.call = print


@pytest.mark.parametrize(
    "value",
    [
        3,
        "text",
        None,
        torch.float16,
        (1, "a"),
        [1, [2]],
        {"a": {"b": 1}},
        {1, 2},
        deque([1, 2]),
        OrderedDict(a=1),
        Pair(1, 2),
        np.arange(3),
        np.float64(2.5),
        torch.arange(3),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_copy_is_put_back_as_the_same_value(value: Any) -> None:
    back = put_back(value, copied(value))

    assert type(back) is type(value) or isinstance(value, np.generic)
    assert back is value or isinstance(value, tuple | np.generic | int)
    assert np.array_equal(back, value) if isinstance(value, np.ndarray | torch.Tensor) else back == value


def test_a_set_is_copied_in_an_order_that_each_process_has() -> None:
    """A set has that of its hashes, which texts get anew in each process, and of what was added first."""
    one, other = {0}, {8}
    one.add(8)
    other.add(0)

    assert [*one] != [*other]
    assert copied(one) == copied(other) == [0, 8]


def test_a_copy_is_out_of_reach_of_later_changes_and_puts_them_back_in_place() -> None:
    value: dict[str, Any] = {"list": [1], "tensor": torch.zeros(2), "array": np.zeros(2), "set": {1}}
    tensor, items = value["tensor"], value["list"]
    copy = copied(value)

    items.append(2)
    tensor.data.add_(1)
    value["array"] += 1
    value["set"].add(2)
    value["new"] = 1

    assert put_back(value, copy) is value
    assert value["list"] is items
    assert value["tensor"] is tensor
    assert (items, tensor.tolist(), value["array"].tolist(), value["set"]) == ([1], [0, 0], [0, 0], {1})
    assert "new" not in value


@pytest.mark.parametrize(
    "generator", [torch.Generator(), np.random.default_rng(1), np.random.RandomState(1), random.Random(1)]
)
def test_a_generator_draws_again_what_it_drew_after_the_copy(generator: Any) -> None:
    def draw() -> float:
        if isinstance(generator, torch.Generator):
            return torch.rand(1, generator=generator).item()
        return float(generator.random() if hasattr(generator, "random") else generator.rand())

    copy = copied(generator)
    first = draw()
    put_back(generator, copy)

    assert draw() == first


def test_an_object_of_the_program_is_kept_by_its_attributes() -> None:
    own = Own()
    copy = copied(own)
    own.count, own.weights = 2, torch.zeros(2)

    assert put_back(own, copy) is own
    assert (own.count, own.weights.tolist(), own.call) == (1, [1.0, 1.0], print)


@pytest.mark.parametrize("kind", [list, deque, tuple])
def test_objects_of_the_program_in_a_list_are_put_back(kind: type) -> None:
    own = Own()
    value = kind([own, 1])
    copy = copied(value)
    own.count = 2
    if kind is not tuple:
        value.append(2)

    assert put_back(value, copy) == kind([own, 1])
    assert own.count == 1


@pytest.mark.parametrize(
    ("value", "why"),
    [
        (print, "it is a"),
        (nn.Linear(1, 1), "it is a torch"),
        (nn.Parameter(torch.ones(1)), "it is a parameter"),
        (torch.ones(1, requires_grad=True) * 2, "a result of the forward pass"),
        ([0] * 10_001, "10,001 entries"),
        ({object(): 1}, "a key of type object"),
    ],
)
def test_what_cannot_be_copied_is_named(value: Any, why: str) -> None:
    with pytest.raises(NotKeptError, match=why):
        copied(value)


def test_a_list_that_holds_itself_is_not_copied_for_ever() -> None:
    value: list[Any] = []
    value.append(value)
    with pytest.raises(NotKeptError, match="refers to itself"):
        copied(value)


def test_leaves_are_named_as_a_program_would_write_them() -> None:
    tree = {"optimizer": {"param_groups": [{"lr": 0.1, "betas": (0.9, 0.99)}]}, "state": {}}

    assert [named(path) for path, _ in leaves(tree)] == [
        "optimizer.param_groups[0].lr",
        "optimizer.param_groups[0].betas[0]",
        "optimizer.param_groups[0].betas[1]",
        "state",
    ]
    name = "optimizer.param_groups[0].lr"
    other = replaced(tree, {("optimizer", "param_groups", 0, "lr"): 0.2}, names={name})
    assert other["optimizer"]["param_groups"][0] == {"lr": 0.2, "betas": (0.9, 0.99)}
    assert tree["optimizer"]["param_groups"][0]["lr"] == 0.1  # type: ignore[index]


def test_values_are_shown_in_one_short_line() -> None:
    assert (shown(0.012700001), shown("a" * 99), shown(torch.tensor(0.5))) == ("0.0127", f"'{'a' * 56}...", "0.5")
    assert shown(torch.ones(2, 3)) == "float32 [2, 3] with sum 6"
