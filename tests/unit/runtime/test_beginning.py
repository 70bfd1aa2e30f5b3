"""What a script for another launcher has is refused when Run is made, with the line to delete."""

from collections.abc import Iterator

import pytest
import torch
import torch.distributed as dist
from torch import nn
from torch.distributed import HashStore

import holdfast_runtime as holdfast
from holdfast_runtime.groups import UnsupportedError, nccl
from holdfast_runtime.inprocess import check_graphs, chosen_backend


def run(model: nn.Module) -> holdfast.Run:
    return holdfast.Run(model, torch.optim.SGD(model.parameters(), lr=0.1))


@pytest.fixture
def group() -> Iterator[None]:
    dist.init_process_group("gloo", store=HashStore(), rank=0, world_size=1)
    yield
    dist.destroy_process_group()


@pytest.mark.parametrize(
    ("asked", "on_gpu", "sharded", "chosen"),
    [
        (None, False, True, "gloo"),
        (None, True, True, "cpu:gloo,cuda:nccl"),
        ("nccl", True, True, "cpu:gloo,cuda:nccl"),
        ("cpu:gloo,cuda:nccl", True, True, "cpu:gloo,cuda:nccl"),
        ("cpu:gloo,cuda:nccl", True, False, "nccl"),
        (None, True, False, "nccl"),
        ("gloo", True, False, "gloo"),
    ],
)
def test_nccl_as_every_script_names_it_has_gloo_for_the_host_where_ranks_agree_on_it(
    monkeypatch: pytest.MonkeyPatch, asked: str | None, on_gpu: bool, sharded: bool, chosen: str
) -> None:
    monkeypatch.setattr(nccl, "set_environment", lambda: None)

    assert chosen_backend(asked, on_gpu=on_gpu, sharded=sharded) == chosen


def test_a_backend_with_nccl_comes_with_its_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TORCH_NCCL_ASYNC_ERROR_HANDLING", "3")

    with pytest.raises(UnsupportedError, match="got TORCH_NCCL_ASYNC_ERROR_HANDLING=3; allowed: 0"):
        chosen_backend("nccl", on_gpu=True, sharded=True)


def test_a_model_that_is_compiled_with_cuda_graphs_is_refused_on_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    model = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))
    model[1].get_compiler_config = lambda: {"triton.cudagraphs": True}
    monkeypatch.setattr(torch.cuda, "is_current_stream_capturing", lambda: False)

    check_graphs(model, on_gpu=False)
    with pytest.raises(UnsupportedError, match=r'1 is compiled with CUDA graphs, .*compile with mode="default"'):
        check_graphs(model, on_gpu=True)


def test_a_graph_that_is_being_captured_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_current_stream_capturing", lambda: True)

    with pytest.raises(UnsupportedError, match="a CUDA graph is being captured"):
        check_graphs(nn.Linear(2, 2), on_gpu=True)


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
