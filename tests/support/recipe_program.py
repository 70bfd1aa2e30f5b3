"""
Runs a training script as it is, such as a recipe of examples/recipes, and writes down every step that it commits.

Arguments: those of ``runtime_program``; the first is a folder. ``RECIPE`` has the script and its flags. Each rank
appends the step, the mean loss and a digest of its part of the parameters, so that runs can be compared bit for bit,
and what it holds of the machine. ``FILLED`` is what parameters are in new memory: torch's FSDP2 example never sets
those of its layers, and two runs of it would begin with whatever was there.
"""

import json
import os
import runpy
import shlex
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

import holdfast_runtime as holdfast
from holdfast_runtime.inprocess import digest_of
from holdfast_runtime.transfer import local

RECIPES = Path(__file__).parents[2] / "examples" / "recipes"


def watch(out: Path) -> None:
    """Wherever the script commits a step, its bits are written down."""
    models: list[nn.Module] = []
    begin, update = holdfast.Run.__init__, holdfast.Step.update

    def watched_begin(run: holdfast.Run, model: nn.Module, *given: Any, **named: Any) -> None:
        models.append(model)
        begin(run, model, *given, **named)

    def watched_update(step: holdfast.Step, loss: Tensor | float | None = None) -> float:
        update(step, loss)
        digest = digest_of([local(parameter) for model in models for parameter in model.parameters()])
        line = {"step": step.number, "loss": step.loss.hex(), "digest": digest, "generation": 0, "time_s": time.time()}
        line["held"] = held()
        with (out / f"rank{torch.distributed.get_rank()}.jsonl").open("a") as file:
            file.write(json.dumps(line) + "\n")
        return step.loss

    holdfast.Run.__init__, holdfast.Step.update = watched_begin, watched_update  # type: ignore[method-assign]


def fill(value: float) -> None:
    """Parameters that ``to_empty`` makes have this value."""
    to_empty = nn.Module.to_empty

    @torch.no_grad()
    def filled(module: nn.Module, **named: Any) -> nn.Module:
        to_empty(module, **named)
        for parameter in module.parameters():
            parameter.fill_(value)
        return module

    nn.Module.to_empty = filled  # type: ignore[method-assign,assignment]


def held() -> dict[str, int]:
    """What a recovery could leave behind in a process."""
    free, total = torch.cuda.mem_get_info() if torch.cuda.is_available() else (0, 0)
    files, threads = (len([*Path("/proc/self", what).iterdir()]) for what in ("fd", "task"))
    return {"gpu_bytes": total - free, "files": files, "threads": threads}


def main() -> None:
    out = Path(sys.argv[1]).resolve()
    torch.set_num_threads(1)
    warnings.filterwarnings("ignore")
    watch(out)
    if "FILLED" in os.environ:
        fill(float(os.environ["FILLED"]))
    script, *flags = shlex.split(os.environ["RECIPE"])
    path = RECIPES / script
    sys.path.insert(0, str(path.parent))
    sys.argv = [script, *flags]
    os.chdir(out)
    runpy.run_path(str(path), run_name="__main__")


if __name__ == "__main__":
    main()
