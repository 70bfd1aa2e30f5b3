"""Callbacks of Lightning: what a process that takes over a rank receives of them, and the one that is refused."""

import copy
import importlib.util
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

from holdfast_runtime.groups import UnsupportedError

if importlib.util.find_spec("pytorch_lightning") is None:
    pytest.skip("needs pytorch_lightning", allow_module_level=True)
pytestmark = pytest.mark.filterwarnings("ignore")


def fit(*callbacks: Any) -> list[dict[str, Any]]:
    """Return ``state=`` of the run after each step."""
    import pytorch_lightning as pl

    from holdfast_runtime.lightning import HoldfastStrategy

    states: list[dict[str, Any]] = []

    class Model(pl.LightningModule):
        def __init__(self) -> None:
            super().__init__()
            self.net = nn.Linear(2, 1)

        def training_step(self, batch: list[Tensor]) -> Tensor:
            return self.net(batch[0]).square().mean()

        def on_train_batch_end(self, *_: object) -> None:
            state = self.trainer.strategy.run._state.rest()["state"]  # type: ignore[attr-defined]
            states.append(copy.deepcopy(state))

        def configure_optimizers(self) -> torch.optim.Optimizer:
            return torch.optim.SGD(self.parameters(), lr=0.1)

    trainer = pl.Trainer(
        strategy=HoldfastStrategy("cpu"),
        accelerator="cpu",
        max_steps=2,
        callbacks=[*callbacks],
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    trainer.fit(Model(), DataLoader(TensorDataset(torch.ones(2, 2))))
    return states


def test_averages_of_weights_and_positions_of_callbacks_are_sent() -> None:
    from pytorch_lightning.callbacks import EarlyStopping, EMAWeightAveraging

    stopping = EarlyStopping("none", check_on_train_epoch_end=False)
    stopping.wait_count = 7
    states = fit(stopping, EMAWeightAveraging(decay=0.5))

    assert [state["average 0"]["n_averaged"].item() for state in states] == [1, 2]
    assert states[0]["received by newcomers: callback 0 EarlyStopping"]["wait_count"] == 7


def test_a_callback_that_makes_a_scheduler_in_the_middle_of_the_training_is_refused_with_the_way() -> None:
    from pytorch_lightning.callbacks import StochasticWeightAveraging

    with pytest.raises(UnsupportedError, match=r"got the callback Stochastic.*allowed: WeightAveraging and EMA"):
        fit(StochasticWeightAveraging(swa_lrs=0.1))
