"""What Lightning asks all ranks for outside of a training step has the answer of all ranks."""

import importlib.util
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor

from holdfast_runtime.groups import UnsupportedError

if importlib.util.find_spec("pytorch_lightning") is None:
    pytest.skip("needs pytorch_lightning", allow_module_level=True)


def strategy(*others: float) -> Any:
    """One rank's, with the values that the others have."""
    from holdfast_runtime.lightning import HoldfastStrategy

    def mean(value: Tensor) -> Tensor:
        return torch.stack([value, *(torch.tensor(other) for other in others)]).mean(0)

    made = HoldfastStrategy(device="cpu")
    made._run = SimpleNamespace(all_reduce_mean=mean, world_size=1 + len(others))  # type: ignore[assignment]
    return made


def test_a_metric_of_a_validation_is_that_of_all_ranks() -> None:
    assert strategy(3.0).is_distributed
    assert strategy(3.0).reduce(torch.tensor(1.0), group=None).item() == 2.0
    assert strategy(3.0).reduce(torch.tensor(1.0), group=None, reduce_op="sum").item() == 4.0


def test_another_reduction_than_mean_and_sum_is_refused() -> None:
    with pytest.raises(UnsupportedError, match='reduce_fx is max; allowed with sync_dist=True: "mean" and "sum"'):
        strategy(3.0).reduce(torch.tensor(1.0), group=None, reduce_op=torch.distributed.ReduceOp.MAX)


def test_the_length_of_a_loader_is_that_of_this_rank_since_a_newcomer_asks_for_it_alone() -> None:
    assert strategy(3.0).reduce(torch.tensor(1.0), reduce_op="sum").item() == 1.0


@pytest.mark.parametrize(
    ("own", "other", "by_all", "by_any"),
    [(True, 1.0, True, True), (True, 0.0, False, True), (False, 0.0, False, False)],
)
def test_ranks_stop_or_save_together(*, own: bool, other: float, by_all: bool, by_any: bool) -> None:
    made = strategy(other)
    assert (made.reduce_boolean_decision(own), made.reduce_boolean_decision(own, all=False)) == (by_all, by_any)
