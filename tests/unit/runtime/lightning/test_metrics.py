"""State of a module that logs metrics, in a process that takes over a rank."""

import importlib.util
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

if importlib.util.find_spec("pytorch_lightning") is None:
    pytest.skip("needs pytorch_lightning", allow_module_level=True)


@pytest.mark.filterwarnings("ignore")
def test_addresses_of_metrics_are_those_of_their_own_process() -> None:
    import pytorch_lightning as pl
    from torchmetrics import MeanMetric

    from holdfast_runtime.lightning import HoldfastStrategy

    sent: list[dict[str, Any]] = []

    class Model(pl.LightningModule):
        def __init__(self) -> None:
            super().__init__()
            self.net, self.mean = nn.Linear(2, 1), MeanMetric()

        def training_step(self, batch: list[Tensor]) -> Tensor:
            loss = self.net(batch[0]).square().mean()
            self.mean(loss)
            self.log("mean", self.mean)
            return loss

        def on_train_batch_end(self, *_: object) -> None:
            sent.append(self.trainer.strategy.run._state.rest()["model"]["attributes"])  # type: ignore[attr-defined]

        def configure_optimizers(self) -> torch.optim.Optimizer:
            return torch.optim.SGD(self.parameters(), lr=0.1)

    trainer = pl.Trainer(
        strategy=HoldfastStrategy("cpu"),
        accelerator="cpu",
        max_steps=1,
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    trainer.fit(Model(), DataLoader(TensorDataset(torch.ones(2, 2))))

    assert "mean" in sent[0]
    assert "_metric_attributes" not in sent[0].get("", {})
