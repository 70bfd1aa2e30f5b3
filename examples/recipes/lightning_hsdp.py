"""
Llama with HSDP in PyTorch Lightning: shards within each replica, and --replicas of them, under Trainer.fit.

    holdfast-run --nproc-per-node 4 --spares 1 lightning_hsdp.py --data text.tokens

The state of a lost rank comes from its twin in another replica, at the current batch. Lightning counts batches itself
and cannot go back to a snapshot, so there are at least two replicas.
"""

import argparse
from typing import Any

import pytorch_lightning as pl
import torch
from pytorch_lightning.utilities.types import OptimizerLRScheduler
from torch import Tensor
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.fsdp import fully_shard
from torch.utils.data import DataLoader, Dataset

import holdfast_runtime as holdfast
from holdfast_runtime.data import TokenFile
from holdfast_runtime.lightning import HoldfastStrategy
from llama import SIZES, Llama, Size, loss_of, materialize
from recipe import data_mesh, mesh_of, parser, precision


class Module(pl.LightningModule):
    """As any other; configure_model shards it."""

    def __init__(self, size: Size, mesh: DeviceMesh, device: torch.device, *, rate: float) -> None:
        super().__init__()
        self.size, self.mesh, self.to_device, self.rate = size, mesh, device, rate
        self.model: Llama | None = None

    def configure_model(self) -> None:
        if self.model is not None:
            return
        with torch.device("meta"):
            self.model = Llama(self.size)
        for module in (*self.model.layers.values(), self.model):
            fully_shard(module, mesh=data_mesh(self.mesh), mp_policy=precision(self.to_device))
        materialize(self.model, device=self.to_device, seed=1)

    def training_step(self, batch: Tensor, batch_idx: int) -> Tensor:  # noqa: ARG002 - the signature is Lightning's
        assert self.model is not None
        loss = loss_of(self.model(batch[:, :-1]), batch[:, 1:])
        self.log("loss", loss, sync_dist=True)
        return loss

    def configure_optimizers(self) -> OptimizerLRScheduler:
        return torch.optim.AdamW(self.parameters(), lr=self.rate, betas=(0.9, 0.95), weight_decay=0.1)


class Windows(Dataset[Tensor]):
    """A token file in pieces of one length; the strategy distributes them."""

    def __init__(self, path: str, *, context: int) -> None:
        self.file, self.context = TokenFile.open(path), context

    def __len__(self) -> int:
        return (len(self.file.tokens) - 1) // self.context

    def __getitem__(self, number: int) -> Tensor:
        begin = number * self.context
        return torch.from_numpy(self.file.tokens[begin : begin + self.context + 1].astype("int64"))


class Lines(pl.Callback):
    """A line per step, from one rank, which after a recovery may be another process."""

    def on_train_batch_end(self, trainer: pl.Trainer, *_: Any) -> None:
        assert isinstance(trainer.strategy, HoldfastStrategy)
        run = trainer.strategy.run
        if run.is_logger:
            loss = trainer.callback_metrics["loss"].item()
            print(f"generation {run.generation}  step {run.step - 1}  loss {loss:.4f}", flush=True)


def main(args: argparse.Namespace) -> None:
    holdfast.init_process_group()
    torch.manual_seed(1)  # the order of the samples follows from it
    device = holdfast.device()
    mesh, size = mesh_of(args, device), SIZES[args.size]
    trainer = pl.Trainer(
        strategy=HoldfastStrategy(device, snapshot_every="never", survive=args.survive or "process"),
        accelerator=device.type,
        max_steps=args.steps,
        max_epochs=-1,
        gradient_clip_val=1.0,
        callbacks=[Lines()],
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    windows = Windows(args.data[0], context=size.context)
    trainer.fit(Module(size, mesh, device, rate=args.rate), DataLoader(windows, args.batch_size, shuffle=True))


if __name__ == "__main__":
    flags = parser(__doc__, sizes=SIZES)
    flags.set_defaults(replicas=2)
    main(flags.parse_args())
