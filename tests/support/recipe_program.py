"""
Runs a recipe of examples/recipes as it is, and writes down every step that it tells of.

Arguments: those of ``runtime_program``. ``RECIPE`` has the script's name and its flags. Each rank appends the step, the
mean loss and a digest of its part of the parameters, so that two runs can be compared bit for bit.
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
from torch import nn

import holdfast_runtime as holdfast
from holdfast_runtime.inprocess import digest_of
from holdfast_runtime.transfer import local

RECIPES = Path(__file__).parents[2] / "examples" / "recipes"


def watch(out: Path) -> None:
    """Wherever a recipe tells of a step, its bits are written down too."""
    import llama
    import recipe

    models: list[nn.Module] = []
    make, tell = llama.materialize, recipe.Report.step

    def materialize(model: nn.Module, **how: Any) -> None:
        models.append(model)
        make(model, **how)

    def step(self: recipe.Report, step: holdfast.Step) -> None:
        tell(self, step)
        digest = digest_of([local(parameter) for model in models for parameter in model.parameters()])
        line = {"step": step.number, "loss": step.loss.hex(), "digest": digest, "epoch": 0, "time_s": time.time()}
        with (out / f"rank{torch.distributed.get_rank()}.jsonl").open("a") as file:
            file.write(json.dumps(line) + "\n")

    llama.materialize, recipe.Report.step = materialize, step  # type: ignore[method-assign]


def main() -> None:
    out, steps = Path(sys.argv[1]), sys.argv[2]
    torch.set_num_threads(1)
    warnings.filterwarnings("ignore")
    sys.path.insert(0, str(RECIPES))
    watch(out)
    script, *flags = shlex.split(os.environ["RECIPE"])
    sys.argv = [script, "--steps", steps, *flags]
    runpy.run_path(str(RECIPES / script), run_name="__main__")


if __name__ == "__main__":
    main()
