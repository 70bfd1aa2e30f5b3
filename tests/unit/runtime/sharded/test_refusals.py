"""What cannot go on in place is refused before the first step, with what to do. Torch's fake backend, one process."""

from collections.abc import Iterator

import pytest
import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.fsdp import FullyShardedDataParallel, fully_shard

from holdfast_runtime.groups import Group, UnsupportedError
from holdfast_runtime.sharded import NoCollectives, check, check_tier
from holdfast_runtime.snapshots import ReplicaCheckpoints


@pytest.fixture(autouse=True)
def groups() -> Iterator[None]:
    group = Group(backend="gloo")
    group.open_alone(rank=1, world_size=4)
    yield
    group.close()


def sgd(model: nn.Module) -> torch.optim.Optimizer:
    return torch.optim.SGD(model.parameters(), lr=0.1)


def refused(model: nn.Module, optimizer: torch.optim.Optimizer | None = None) -> str:
    with pytest.raises(UnsupportedError) as caught:
        check(model, optimizer or sgd(model), world_size=4)
    return str(caught.value)


def test_a_model_of_fully_shard_is_taken() -> None:
    model = nn.Linear(4, 4)
    fully_shard(model)

    check(model, sgd(model), world_size=4)


def test_fsdp1_is_refused() -> None:
    model = FullyShardedDataParallel(nn.Linear(4, 4), device_id=torch.device("cpu"))

    assert "FullyShardedDataParallel, which keeps its groups for good; shard it with fully_shard" in refused(model)


def test_deepspeed_is_refused() -> None:
    engine = type("DeepSpeedEngine", (nn.Linear,), {"__module__": "deepspeed.runtime.engine"})(4, 4)

    assert refused(engine).startswith("deepspeed.runtime.engine.DeepSpeedEngine makes and keeps groups of its own")


def test_an_optimizer_that_is_known_to_need_other_ranks_is_refused() -> None:
    model = nn.Linear(4, 4)
    optimizer = type("ZeroRedundancyOptimizer", (torch.optim.SGD,), {})(model.parameters(), lr=0.1)

    assert "has collectives in its step" in refused(model, optimizer)


def test_an_optimizer_that_calls_a_collective_is_found_in_its_first_update() -> None:
    class Averages(torch.optim.SGD):
        def step(self, closure: object = None) -> None:  # type: ignore[override]
            for group in self.param_groups:
                for parameter in group["params"]:
                    dist.all_reduce(parameter.grad)

    model = nn.Linear(4, 4)
    model(torch.ones(1, 4)).sum().backward()
    with NoCollectives():  # type: ignore[no-untyped-call]
        sgd(model).step()
        with pytest.raises(UnsupportedError, match="the optimizer calls the collective c10d"):
            Averages(model.parameters(), lr=0.1).step()


def test_communication_with_memory_of_its_own_is_refused() -> None:
    model = nn.Linear(4, 4)
    fully_shard(model)
    model.set_allocate_memory_from_process_group_for_comm(True)  # type: ignore[operator]

    assert "communicates by ProcessGroupAllocAllGather" in refused(model)


def test_async_tensor_parallel_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    import torch._inductor.config as inductor

    monkeypatch.setattr(inductor, "_micro_pipeline_tp", True)

    assert "async tensor parallel keeps symmetric memory" in refused(nn.Linear(4, 4))


def test_a_mesh_that_is_not_all_ranks_is_refused() -> None:
    model = nn.Linear(4, 4)
    fully_shard(model, mesh=dist.init_device_mesh("cpu", (2,), mesh_dim_names=("shard",)))

    assert refused(model) == (
        "the mesh is 2 (shard), 2 ranks, and the job has 4; the world must be a multiple of tp x pp, and the other "
        "dimensions its quotient"
    )


def test_checkpoints_of_replicas_are_refused(tmp_path: object) -> None:
    check_tier(None)
    with pytest.raises(
        UnsupportedError, match="checkpoint is a ReplicaCheckpoints, which writes the state of one rank"
    ):
        check_tier(ReplicaCheckpoints(f"{tmp_path}/run", read_only=True))
