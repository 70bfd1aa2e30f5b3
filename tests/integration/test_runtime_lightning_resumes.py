"""A newcomer, or a job from a checkpoint, that begins with a finished update begins with the batch after it."""

import importlib.util
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

if importlib.util.find_spec("pytorch_lightning") is None:
    pytest.skip("needs pytorch_lightning", allow_module_level=True)

from holdfast_runtime.snapshots import ReplicaCheckpoints

BATCHES, STEPS = 5, 12


def fit(folder: Path, *, steps: int) -> list[tuple[int, int, float, float]]:
    import pytorch_lightning as pl  # 1.3 s, in each process that collects tests

    from holdfast_runtime.lightning import HoldfastStrategy

    class Module(pl.LightningModule):
        """Writes down epoch, batch, learning rate and loss of each step."""

        def __init__(self, seen: list[tuple[int, int, float, float]]) -> None:
            super().__init__()
            self.layer = torch.nn.Linear(4, 1)
            self.see = seen.append  # a list of the module would be part of its state

        def training_step(self, batch: list[Tensor], index: int) -> Tensor:
            loss: Tensor = self.layer(batch[0]).square().mean()
            rate = self.optimizers().param_groups[0]["lr"]  # type: ignore[union-attr]
            self.see((self.current_epoch, index, rate, float(loss)))
            return loss

        def configure_optimizers(self) -> Any:
            optimizer = torch.optim.SGD(self.parameters(), lr=0.1, momentum=0.9)
            schedule = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.9)
            return {"optimizer": optimizer, "lr_scheduler": {"scheduler": schedule, "interval": "step"}}

    seen: list[tuple[int, int, float, float]] = []
    torch.manual_seed(1)
    data = torch.utils.data.TensorDataset(torch.randn(2 * BATCHES, 4, generator=torch.Generator().manual_seed(2)))
    checkpoints = ReplicaCheckpoints(folder)
    trainer = pl.Trainer(
        strategy=HoldfastStrategy(checkpoint=checkpoints, checkpoint_every=1),
        max_steps=steps,
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    trainer.fit(Module(seen), torch.utils.data.DataLoader(data, batch_size=2))
    checkpoints.wait()
    return seen


@pytest.mark.filterwarnings("ignore")
def test_training_from_a_checkpoint_goes_on_with_the_next_batch_and_its_rate(tmp_path: Path) -> None:
    whole = fit(tmp_path / "whole", steps=STEPS)
    parts = {}
    for where, stop in {"within an epoch": 3, "at its end": BATCHES, "in the next one": BATCHES + 1}.items():
        parts[where] = fit(tmp_path / where, steps=stop) + fit(tmp_path / where, steps=STEPS)

    assert [step[:2] for step in whole] == [divmod(number, BATCHES) for number in range(STEPS)]
    assert parts == dict.fromkeys(parts, whole)
