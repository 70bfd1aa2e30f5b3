"""What a script for another launcher has is refused when Run is made, with the line to delete."""

from collections.abc import Iterator

import pytest
import torch
import torch.distributed as dist
from torch import nn
from torch.distributed import HashStore

import holdfast_runtime as holdfast
from holdfast_runtime.groups import UnsupportedError


def run(model: nn.Module) -> holdfast.Run:
    return holdfast.Run(model, torch.optim.SGD(model.parameters(), lr=0.1))


@pytest.fixture
def group() -> Iterator[None]:
    dist.init_process_group("gloo", store=HashStore(), rank=0, world_size=1)
    yield
    dist.destroy_process_group()


@pytest.mark.parametrize("name", ["WORLD_SIZE", "OMPI_COMM_WORLD_SIZE", "SLURM_STEP_NUM_TASKS"])
def test_several_processes_of_another_launcher_do_not_train_a_model_each(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, "2")

    with pytest.raises(UnsupportedError, match=f"{name} is 2, .* start the script with holdfast-run, or remove {name}"):
        run(nn.Linear(2, 2))


@pytest.mark.parametrize("count", ["1", "", "many"])
def test_one_process_of_another_launcher_trains_alone(count: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WORLD_SIZE", count)

    assert run(nn.Linear(2, 2)).world_size == 1


def test_a_model_in_a_wrapper_that_reduces_gradients_is_refused(group: None) -> None:
    with pytest.raises(UnsupportedError, match="in DistributedDataParallel; give Run the model without it"):
        run(nn.parallel.DistributedDataParallel(nn.Linear(2, 2)))
    with pytest.raises(UnsupportedError, match="in DataParallel; give Run the model without it"):
        run(nn.Sequential(nn.DataParallel(nn.Linear(2, 2))))


def test_an_embedding_with_sparse_gradients_is_refused_by_its_name() -> None:
    model = nn.Sequential(nn.Embedding(4, 2, sparse=True), nn.Linear(2, 2))

    with pytest.raises(UnsupportedError, match=r"^0 has sparse=True, .*; make it with sparse=False"):
        run(model)


def test_all_objects_of_state_without_a_state_dict_are_refused_at_once() -> None:
    model = nn.Linear(2, 2)

    with pytest.raises(UnsupportedError, match=r"^state has average, counts without state_dict"):
        holdfast.Run(
            model,
            torch.optim.SGD(model.parameters(), lr=0.1),
            state={"average": object(), "model": model, "counts": {"a": 1}},  # type: ignore[dict-item]
        )
