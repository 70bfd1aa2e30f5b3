"""
The training program of the sharded recovery tests: one small model in any layout, and a line for each committed step.

Arguments: folder for the results, updates to make, seconds of sleep per step. ``LAYOUT`` names the mesh, such as
"replicate2 shard2 tp2"; ``SNAPSHOT_EVERY`` the updates from one snapshot to the next. Each rank appends the step, the
mean loss and a digest of all that it holds, so that two runs can be compared bit for bit; beside them whether its
process has tried a step before it had a rank, and how many graphs it compiled in this one, where ``COMPILE`` is set.
``ELASTIC`` says that it keeps nothing of its rank. Faults may strike before each collective of forward and backward:
their phase is "collective:N", and "validation:N" in a pass after the update where ``VALIDATES`` is set.
``EPOCH`` cuts the steps into
loops. ``LOOKS`` has a pass without a backward before the update.
``STAGE_SHAPES`` gives the stages of a pipeline the shapes of their tensors. Ranks wait in step ``UNTIL_TRIED`` for a
spare to try one.
"""

import contextlib
import json
import os
import re
import sys
import time
import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import torch
from sharded_model import BATCH, CONTEXT, LAYERS, VOCABULARY, WIDTH, Model, loss_of
from torch import Tensor, nn
from torch._dynamo.utils import counters
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import DTensor
from torch.utils._python_dispatch import TorchDispatchMode

import holdfast_runtime as holdfast
from holdfast_runtime.faults import Injector
from holdfast_runtime.inprocess import digest_of
from holdfast_runtime.snapshots import Checkpoints
from holdfast_runtime.transfer import local

TRIAL_S = 3.0
"""A spare needs at most, on a busy machine, from the end of its backward pass until it can have a rank."""


class Collectives(TorchDispatchMode):
    """Counts those of a step, and lets faults strike before each."""

    def __init__(self, faults: Injector, phase: str = "collective") -> None:
        super().__init__()
        self.faults, self.phase, self.number = faults, phase, 0

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if function.namespace in ("c10d", "_c10d_functional"):
            self.faults.point(f"{self.phase}:{self.number}")
            self.number += 1
        return function(*args, **(kwargs or {}))


def mesh_of(layout: str) -> DeviceMesh:
    found = re.findall(r"([a-z]+)(\d+)", layout)
    return init_device_mesh(
        "cpu", tuple(int(size) for _, size in found), mesh_dim_names=tuple(name for name, _ in found)
    )


def divided(model: Model, mesh: DeviceMesh) -> None:
    """The model in a mesh: tensor parallel layers, then data parallel ones."""
    names = mesh.mesh_dim_names or ()
    if "tp" in names:
        from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

        for layer in model.layers:
            parallelize_module(layer, mesh["tp"], {"up": ColwiseParallel(), "down": RowwiseParallel()})
    dims = tuple(name for name in ("replicate", "shard") if name in names)
    if "shard" in dims:
        for module in (*model.layers, model):
            fully_shard(module, mesh=mesh[dims] if len(dims) > 1 else mesh[dims[0]])
    elif dims:
        from torch.distributed._composable.replicate_with_fsdp import replicate

        for module in (*model.layers, model):
            replicate(module, mesh=mesh["replicate"])


def piped(model: Model, mesh: DeviceMesh) -> None:
    """This stage's layers only."""
    stage, stages = mesh["pp"].get_local_rank(), mesh["pp"].size()
    share = LAYERS // stages
    model.layers = nn.ModuleList([*model.layers][share * stage : share * (stage + 1)])
    model.embed = model.embed if stage == 0 else None
    model.head = model.head if stage == stages - 1 else None


def main() -> None:
    out, total, pause_s = Path(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3])
    torch.set_num_threads(1)
    warnings.filterwarnings("ignore")
    holdfast.init_process_group()
    mesh = mesh_of(os.environ["LAYOUT"])
    torch.manual_seed(1)
    model, schedule = Model(), None
    if "pp" in (mesh.mesh_dim_names or ()):
        piped(model, mesh)
    divided(model, mesh)
    for layer in model.layers if os.environ.get("COMPILE") else ():
        layer.compile(backend="aot_eager")
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=4, gamma=0.5)
    if "pp" in (mesh.mesh_dim_names or ()):
        from torch.distributed.pipelining import PipelineStage, Schedule1F1B

        pp = mesh["pp"]
        stage = PipelineStage(
            model, pp.get_local_rank(), pp.size(), torch.device("cpu"), group=pp.get_group(), **shapes(model)
        )
        schedule = Schedule1F1B(stage, n_microbatches=2, loss_fn=loss_of)
        del stage
    given = os.environ.get("SNAPSHOT_EVERY")
    every = int(given) if given else None
    stored = os.environ.get("CHECKPOINT_EVERY")
    run = holdfast.Run(
        model,
        optimizer,
        scheduler=scheduler,
        pipeline=schedule,
        snapshot_every="never" if stored else every,
        checkpoint=Checkpoints(out / "checkpoints") if stored else None,
        checkpoint_every=int(stored or 0),
        digest_every=2,
        elastic=os.environ.get("ELASTIC"),
    )
    faults, tried = Injector.from_environment(), False
    for step in steps_of(run, optimizer, faults, total=total):
        tried, before = tried or step.trial, counters["stats"]["unique_graphs"]
        with step:
            if step.trial and os.environ.get("TRIAL_RAISES"):
                raise ValueError("this batch cannot be had without a rank")
            faults.rank, faults.step = -1 if step.trial else run.rank, step.number
            generator = torch.Generator().manual_seed(1000 * step.number + run.data_rank)
            tokens = torch.randint(0, VOCABULARY, (BATCH, CONTEXT + 1), generator=generator)
            time.sleep(pause_s)
            # Torch compiles nothing while such a mode is on.
            with contextlib.nullcontext() if os.environ.get("COMPILE") else Collectives(faults):
                loss = passed(model, schedule, tokens[:, :-1], tokens[:, 1:])
            if os.environ.get("LOOKS"):
                with torch.no_grad():
                    model(tokens[:, :-1])
            if step.trial:
                (out / "tried").touch()
                time.sleep(float(os.environ.get("TRIAL_TAKES_S", "0")))
            elif str(step.number) == os.environ.get("UNTIL_TRIED"):
                until_there(out / "tried", for_s=TRIAL_S)
            step.update(loss)
            compiled = counters["stats"]["unique_graphs"] - before
            cut = any(p.device_mesh._thread_id is not None for p in model.parameters() if hasattr(p, "device_mesh"))
            written(out, run, step, model, optimizer, more={"tried": tried, "compiled": compiled, "cut": cut})
            if os.environ.get("VALIDATES"):
                with torch.no_grad(), Collectives(faults, "validation"):
                    model(tokens[:, :-1])
                model.reshard()  # type: ignore[operator]  # FSDP keeps the outermost module gathered until backward
        gathered = [name for name, parameter in model.named_parameters() if not isinstance(parameter, DTensor)]
        assert not gathered or "shard" not in os.environ["LAYOUT"], f"behind the step {gathered} is gathered"
    (out / f"done{run.rank}").write_text("")


def steps_of(
    run: holdfast.Run, optimizer: torch.optim.Optimizer, faults: Injector, *, total: int
) -> Iterator[holdfast.Step]:
    """Steps, in loops of ``EPOCH`` where it is set, with another weight decay behind each."""
    length = int(os.environ.get("EPOCH") or total)
    for end in range(length, total + 1, length):
        yield from run.steps(end)
        for group in optimizer.param_groups:
            group["weight_decay"] *= 2
        faults.rank, faults.step = run.rank, end
        faults.point("pause")


def shapes(model: Model) -> dict[str, Tensor]:
    """Of what a stage is sent and sends, in a microbatch; nothing where it is to ask its neighbours."""
    if not os.environ.get("STAGE_SHAPES"):
        return {}
    tokens = torch.zeros(BATCH // 2, CONTEXT, dtype=torch.int64)
    hidden = torch.zeros(BATCH // 2, CONTEXT, WIDTH, requires_grad=True)
    logits = torch.zeros(BATCH // 2, CONTEXT, VOCABULARY, requires_grad=True)
    return {
        "input_args": hidden if model.embed is None else tokens,
        "output_args": hidden if model.head is None else logits,
    }


def until_there(path: Path, *, for_s: float) -> None:
    for _ in range(1000):
        if path.exists() and time.time() - path.stat().st_mtime > for_s:
            return
        time.sleep(0.05)
    raise TimeoutError(f"nobody has made {path}")


def passed(model: Model, schedule: Any, inputs: Tensor, targets: Tensor) -> Tensor | float:
    """Forward and backward; the loss."""
    if schedule is None:
        loss = loss_of(model(inputs), targets)
        loss.backward()
        return loss
    losses: list[Tensor] = []
    if model.embed is not None:
        schedule.step(inputs)
    elif model.head is not None:
        schedule.step(target=targets, losses=losses)
    else:
        schedule.step()
    return torch.stack(losses).mean() if losses else 0.0


def written(
    out: Path,
    run: holdfast.Run,
    step: holdfast.Step,
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    *,
    more: Mapping[str, int],
) -> None:
    kept = [optimizer.state[parameter] for parameter in model.parameters()]
    moments = [state[name] for state in kept for name in sorted(state)]
    digest = digest_of([local(tensor) for tensor in (*model.parameters(), *model.buffers(), *moments)])
    line = {
        "step": step.number,
        "loss": step.loss.hex(),
        "digest": digest,
        "generation": run.generation,
        "time_s": time.time(),
        **more,
    }
    with (out / f"rank{run.rank}.jsonl").open("a") as file:
        file.write(json.dumps(line) + "\n")


if __name__ == "__main__":
    main()
