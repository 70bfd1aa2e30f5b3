"""
A training with all that an ordinary loop has: a validation, an average, a schedule by epochs, dropout and BatchNorm.

Arguments are those of ``killing.run_job``: folder, steps, pause. ``LAYOUT`` is replicas or fsdp. A process writes its
pid for whoever kills it, and at the end a digest of all state.
"""

import hashlib
import json
import os
import sys
import time
from pathlib import Path

import torch
from torch import Tensor, nn

import holdfast_runtime as holdfast

FOLDER, STEPS, PAUSE_S = Path(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3])
SHARDED = os.environ["LAYOUT"] == "fsdp"
GENERATION, VALIDATION = 25, 4


def local(tensor: Tensor) -> Tensor:
    part: Tensor = tensor.to_local() if hasattr(tensor, "to_local") else tensor
    return part.detach()


class Average:
    """Of the parameters."""

    def __init__(self, model: nn.Module) -> None:
        self.values = [local(parameter).clone() for parameter in model.parameters()]

    def update(self, model: nn.Module) -> None:
        for value, parameter in zip(self.values, model.parameters(), strict=True):
            value.lerp_(local(parameter), 0.1)

    def state_dict(self) -> dict[str, list[Tensor]]:
        return {"values": self.values}

    def load_state_dict(self, state: dict[str, list[Tensor]]) -> None:
        for value, other in zip(self.values, state["values"], strict=True):
            value.copy_(other)


def sample(number: int, rank: int) -> Tensor:
    return torch.randn(8, 16, generator=torch.Generator().manual_seed(1000 * number + rank))


def validate(run: holdfast.Run, model: nn.Module) -> None:
    model.eval()
    with torch.no_grad():
        inputs = sample(10**6, run.data_rank)
        total = (model(inputs) - inputs).square().mean()
    if SHARDED:
        model.reshard()  # type: ignore[operator]  # the outermost module keeps its gathered parameters until backward
    run.all_reduce_mean(total)
    model.train()


def main() -> None:
    torch.set_num_threads(1)
    if SHARDED:
        holdfast.init_process_group()
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(16, 64), nn.BatchNorm1d(64), nn.GELU(), nn.Dropout(0.1), nn.Linear(64, 16))
    if SHARDED:
        from torch.distributed.fsdp import fully_shard

        for module in (model[0], model[4], model):
            fully_shard(module)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, 2, 0.8)
    average = Average(model)
    options = {"snapshot_every": 1} if SHARDED else {}
    run = holdfast.Run(model, optimizer, state={"average": average}, digest_every=10, **options)
    for step in run.steps(STEPS):
        with step:
            if not step.trial:
                (FOLDER / f"pid{run.rank}").write_text(str(os.getpid()))
            inputs = sample(step.number, run.data_rank)
            loss = (model(inputs + 0.01 * torch.randn_like(inputs)) - inputs).square().mean()
            loss.backward()
            step.update(loss)
            if step.number % VALIDATION == VALIDATION - 1:
                validate(run, model)
        average.update(model)
        if step.number % GENERATION == GENERATION - 1:
            schedule.step()
        if step.done:
            (FOLDER / f"at{run.rank}").write_text(str(step.number))
            time.sleep(PAUSE_S)
    state = [*model.parameters(), *model.buffers(), *average.values]
    digest = hashlib.sha256(b"".join(local(tensor).numpy().tobytes() for tensor in state)).hexdigest()
    about = {"digest": digest, "lr": optimizer.param_groups[0]["lr"], "training": model.training}
    (FOLDER / f"end{run.rank}.json").write_text(json.dumps(about))


if __name__ == "__main__":
    main()
