"""
A training with Lightning, as users write it: arguments are the folder for what each rank has done, and the steps.

ACCUMULATE: batches of each step. DIE: the step in whose second batch rank 1 kills itself once.
"""

import hashlib
import json
import os
import signal
import sys
import warnings
from pathlib import Path

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import pytorch_lightning as pl
import torch
from pytorch_lightning.callbacks import EMAWeightAveraging
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

from holdfast_runtime.lightning import HoldfastStrategy


class Model(pl.LightningModule):
    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Sequential(nn.Linear(8, 64), nn.Tanh(), nn.Dropout(0.2), nn.Linear(64, 1))
        self.seen: list[float] = []

    def training_step(self, batch: tuple[Tensor, Tensor], batch_idx: int) -> Tensor:
        inputs, wanted = batch
        run, flag = self.trainer.strategy.run, FOLDER / "died"  # type: ignore[attr-defined]
        if os.environ.get("DIE") == str(run.step) and run.rank == 1 and batch_idx % 3 == 1 and not flag.exists():
            flag.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        loss = nn.functional.mse_loss(self.net(inputs), wanted)
        self.log("loss", loss, sync_dist=True)
        self.samples = inputs
        return loss

    def configure_optimizers(self) -> dict:  # type: ignore[type-arg]
        optimizer = torch.optim.AdamW(self.parameters(), lr=0.01)
        schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 1.0 / (1 + 0.1 * step))
        return {"optimizer": optimizer, "lr_scheduler": {"scheduler": schedule, "interval": "step"}}


class Recorder(pl.Callback):
    """Writes, after each batch, what the update has made."""

    def on_train_batch_end(self, trainer: pl.Trainer, module: Model, *_: object) -> None:  # type: ignore[override]
        if trainer.fit_loop._should_accumulate():
            return
        run = trainer.strategy.run  # type: ignore[attr-defined]
        parameters = torch.cat([parameter.detach().reshape(-1) for parameter in module.parameters()])
        rate = trainer.optimizers[0].param_groups[0]["lr"]
        average = [value.tolist() for value in AVERAGE._average_model.state_dict().values()]  # type: ignore[union-attr]
        about = (parameters.numpy().tobytes(), average, module.samples.numpy().tobytes(), rate, trainer.global_step)
        line = {"step": run.step, "loss": str(rate), "digest": hash_of(*about)}
        with (FOLDER / f"rank{run.rank}.jsonl").open("a") as file:
            file.write(json.dumps(line) + "\n")


def hash_of(*values: object) -> int:
    return int.from_bytes(hashlib.sha256(repr(values).encode()).digest()[:8], "big")


FOLDER = Path(sys.argv[1])
AVERAGE = EMAWeightAveraging(decay=0.5)

if __name__ == "__main__":
    torch.set_num_threads(1)
    torch.manual_seed(7)
    inputs = torch.randn(42, 8)
    data = DataLoader(TensorDataset(inputs, inputs.sum(dim=1, keepdim=True)), batch_size=3, shuffle=True)
    trainer = pl.Trainer(
        strategy=HoldfastStrategy("cpu"),
        max_steps=int(sys.argv[2]),
        max_epochs=-1,
        accelerator="cpu",
        gradient_clip_val=0.5,
        accumulate_grad_batches=int(os.environ.get("ACCUMULATE", "1")),
        callbacks=[AVERAGE, Recorder()],
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    trainer.fit(Model(), data)
