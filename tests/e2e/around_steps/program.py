"""
Train a tiny model with one form of a loop, and print one line of digests at the end.

FORM names it, LAYOUT is replicas, hsdp, fsdp or elastic. KILL=place:rank:step ends a rank by SIGKILL; PAUSE=1 makes the
others wait between that step and the next one. COLLECTIVE=1 puts a mean over all ranks after the update.
"""

import hashlib
import json
import os
import sys
import warnings
import zlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import torch

sys.path.insert(0, str(Path(__file__).parent))

from forms.catalogue import FORMS
from forms.form import Form
from loop import HERE, PARTS, STEPS, is_last_of_epoch, local, sharded
from torch import Tensor

import holdfast_runtime as holdfast


def main() -> None:
    HERE.read_environment()
    HERE.out = Path(sys.argv[1]) if len(sys.argv) > 1 else HERE.out
    torch.set_num_threads(1)
    warnings.filterwarnings("ignore")
    if HERE.sharded:
        holdfast.init_process_group()
    torch.manual_seed(0)
    form = FORMS[os.environ["FORM"]].make()
    model: Any = form.model()
    if HERE.sharded:
        sharded(model, HERE.layout, form.units(model))
    HERE.model, HERE.optimizer = model, form.optimizer(model)
    run: Any = holdfast.Run(model, HERE.optimizer, **{**kept(), **form.arguments()})
    HERE.run = run
    HERE.at("ready")
    HERE.came_later = (HERE.out / "killed").exists()
    form.ready()
    for step in run.steps(STEPS):
        HERE.begin(step.number, trial=step.trial)
        form.outset(step.number)
        with step, HERE:
            one(form, step)
        HERE.left()
        HERE.die("between")
        HERE.pause()
        form.between(step)
    HERE.at("end")
    # A pipe takes a line of this length in one piece.
    os.write(1, f"\n{json.dumps(line(form))}\n".encode())


def kept() -> dict[str, Any]:
    """Arguments of ``Run`` of a layout."""
    every = os.environ.get("SNAPSHOT_EVERY", "never")
    found: dict[str, Any] = {"snapshot_every": every if every == "never" else int(every)} if HERE.sharded else {}
    return {**found, "elastic": PARTS} if HERE.layout == "elastic" else found


def one(form: Form, step: holdfast.Step) -> None:
    """The body of a step."""
    number = step.number
    HERE.at("top")
    form.top(number)
    HERE.die("top")
    for part in step.parts():
        values = form.batch(number, part)
        HERE.at("forward")
        loss = form.loss(values)
        HERE.die("backward")
        if HERE.layout == "elastic":
            step.backward(loss)
        else:
            form.backward(loss)
    HERE.at("before")
    form.before(number)
    HERE.at("vote")
    if HERE.trial:
        HERE.once("tried")
    form.update(step, loss)
    HERE.die("after")
    if HERE.collective:
        HERE.run.all_reduce_mean(loss)
    form.after(number)
    if is_last_of_epoch(number):
        HERE.at("evaluation")
        form.evaluate(number)


def line(form: Form) -> dict[str, Any]:
    """What this rank has at the end."""
    model, optimizer = HERE.model, HERE.optimizer
    names = {id(parameter): name for name, parameter in model.named_parameters()}
    moments = [
        (f"{names.get(id(parameter), 'other')}.{key}", value)
        for parameter, state in optimizer.state.items()
        for key, value in sorted(state.items())
    ]
    groups = [
        [(key, names_of(value, names) if key == "params" else value) for key, value in sorted(group.items())]
        for group in optimizer.param_groups
    ]
    return {
        "rank": HERE.run.rank,
        "generation": HERE.run.generation,
        "learned": HERE.learned,
        "redone": HERE.redone,
        "parameters": digest(model.named_parameters()),
        "buffers": digest(model.named_buffers()),
        "state": digest(moments),
        "groups": text_digest(groups),
        "lr": optimizer.param_groups[0]["lr"],
        "modes": text_digest([(name, module.training) for name, module in model.named_modules()]),
        "flags": text_digest([(name, tensor.requires_grad) for name, tensor in model.named_parameters()]),
        "switches": switches(),
        "result": form.result(),
    }


def switches() -> list[str]:
    """Of torch, as far as a loop may set them."""
    return [
        f"grad {torch.is_grad_enabled()}",
        f"autocast {torch.is_autocast_enabled('cpu')} {torch.get_autocast_dtype('cpu')}",
        f"dtype {torch.get_default_dtype()}",
        f"deterministic {torch.are_deterministic_algorithms_enabled()}",
        f"precision {torch.get_float32_matmul_precision()}",
        f"anomaly {torch.is_anomaly_enabled()}",
    ]


def names_of(parameters: Iterable[Any], names: dict[int, str]) -> list[str]:
    return [names.get(id(parameter), "other") for parameter in parameters]


def digest(tensors: Iterable[tuple[str, Any]]) -> str:
    """Of this rank's parts; in an elastic job a sum over rows, which no number of ranks changes."""
    if HERE.layout == "elastic":
        return str(sum(rows(name, tensor) for name, tensor in tensors))
    found = hashlib.sha256()
    for name, value in sorted(tensors, key=lambda pair: pair[0]):
        found.update(f"{name} {getattr(value, 'dtype', '')}".encode())
        found.update(bytes_of(value) if isinstance(value, Tensor) else repr(value).encode())
    return found.hexdigest()[:10]


def rows(name: str, value: Any) -> int:
    """Sum of the checksums of the rows that this rank has."""
    from torch.distributed.tensor import DTensor

    if not isinstance(value, DTensor):
        return 0
    height = -(-value.shape[0] // value.device_mesh.size()) if value.shape else 1
    first = height * value.device_mesh.get_local_rank()
    return sum(zlib.crc32(f"{name} {first + n}".encode() + bytes_of(row)) for n, row in enumerate(value.to_local()))


def bytes_of(tensor: Tensor) -> bytes:
    return local(tensor).detach().contiguous().view(-1).view(torch.uint8).numpy().tobytes()


def text_digest(value: Any) -> str:
    return hashlib.sha256(repr(value).encode()).hexdigest()[:10]


if __name__ == "__main__":
    main()
