"""Shared parts of the recipes: flags, mesh, data, report."""

import argparse
import os
from collections.abc import Iterable
from typing import Any

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.distributed.fsdp import MixedPrecisionPolicy

import holdfast_runtime as holdfast
from holdfast_runtime.data import Dataset, Source


def parser(description: str | None, *, sizes: Iterable[str] = ()) -> argparse.ArgumentParser:
    """Flags of all recipes; --size for recipes with their own model."""
    found = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = found.add_argument
    add("--data", nargs="+", required=True, help="token files, of python -m holdfast_runtime.data build")
    if sizes:
        add("--size", choices=sizes, default="tiny", help="of the model. Default: tiny")
    add("--steps", type=int, default=50, help="Default: 50")
    add("--batch-size", type=int, default=2, help="sequences per rank, or of a pipeline. Default: 2")
    add("--rate", type=float, default=3e-4, help="learning rate. Default: 0.0003")
    add("--replicas", type=int, default=1, metavar="R", help="copies of all shards. Default: 1")
    add("--snapshot-every", type=updates, metavar="K", help='updates, or "never". Default: by their cost, if needed')
    add("--survive", choices=("process", "node", "rack"), help="refuse to begin unless any one may be lost")
    add("--report-every", type=int, default=1, metavar="STEPS", help="Default: 1")
    add("--tensorboard", default="", metavar="DIR", help="a folder that all nodes share. Default: none")
    add("--mlflow", default="", metavar="URI", help="of the tracking server. Default: none")
    add("--run-name", default=os.environ.get("SLURM_ARRAY_JOB_ID", "recipe"), help="in MLflow. Default: of Slurm's job")
    return found


def updates(text: str) -> int | str:
    return text if text == "never" else int(text)


def mesh_of(args: argparse.Namespace, device: torch.device, *, pp: int = 1, tp: int = 1) -> DeviceMesh:
    """Mesh of stages, copies, shards and parts of a layer."""
    world = dist.get_world_size()
    shards, rest = divmod(world, pp * args.replicas * tp)
    if rest:
        raise SystemExit(
            f"{world} ranks are no multiple of {pp} stages x {args.replicas} replicas x {tp} parts of a layer"
        )
    sizes = {"pp": pp, "replicate": args.replicas, "shard": shards, "tp": tp}
    names = [name for name, size in sizes.items() if size > 1 or name == "shard"]
    return init_device_mesh(device.type, tuple(sizes[name] for name in names), mesh_dim_names=tuple(names))


def data_mesh(mesh: DeviceMesh) -> DeviceMesh:
    """Part of a mesh along which each rank has its own samples."""
    return mesh["replicate", "shard"] if "replicate" in (mesh.mesh_dim_names or ()) else mesh["shard"]


def precision(device: torch.device) -> MixedPrecisionPolicy:
    """bfloat16 on GPUs; sums of gradients stay in 32 bits."""
    if device.type == "cpu":
        return MixedPrecisionPolicy()
    return MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)


def dataset(args: argparse.Namespace, context: int, mesh: DeviceMesh) -> Dataset:
    """Batches as a function of step and data-parallel rank."""
    return Dataset(
        sources=[Source("text", args.data)],
        context=context,
        batch_size=args.batch_size,
        world_size=data_mesh(mesh).size(),
        seed=1,
    )


class Report:
    """
    Lines, TensorBoard and MLflow, from one rank, which after a recovery may be another process.

    Repeated steps replace their earlier lines. If the rank is lost between update and line, and a twin continues, the
    line is missing.
    """

    def __init__(self, run: holdfast.Run, args: argparse.Namespace) -> None:
        self._run, self._args = run, args
        self._next = -1
        """Next step to report."""
        self._board: Any = None
        self._client: Any = None
        self._run_id = ""

    def step(self, step: holdfast.Step) -> None:
        """Call in each step, after its update."""
        if not self._run.is_logger or step.number % self._args.report_every:
            return
        print(f"generation {self._run.generation}  step {step.number}  loss {step.loss:.4f}", flush=True)
        if step.number < self._next or self._next < 0:
            self._open(step.number)
        self._next = step.number + 1
        if self._board is not None:
            self._board.add_scalar("loss", step.loss, step.number)
            self._board.flush()
        if self._client is not None:
            self._client.log_metric(self._run_id, "loss", step.loss, step=step.number)

    def _open(self, number: int) -> None:
        if self._args.tensorboard:
            from torch.utils.tensorboard import SummaryWriter

            self._board = SummaryWriter(self._args.tensorboard, purge_step=number)
        if self._args.mlflow:
            from mlflow import MlflowClient

            self._client = MlflowClient(self._args.mlflow)
            name = self._args.run_name
            known = self._client.search_runs(["0"], f"attributes.run_name = '{name}'")
            self._run_id = (known[0] if known else self._client.create_run("0", run_name=name)).info.run_id
