"""
torchtitan's trainer with recovery in place: a subclass, with torchtitan unchanged.

    holdfast-run --nproc-per-node 8 --spares 1 titan.py --module llama3 --config llama3_8b \\
        --dataloader.dataset_path /fsx/data/text.tokens --training.disable_cuda_graphs

All flags are torchtitan's (0.3.0). Batches of a token file are a function of the step: torchtitan's own loaders have a
position, so a repeated step would get other samples.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torchtitan.components.dataloader import BaseDataLoader
from torchtitan.components.tokenizer import BaseTokenizer
from torchtitan.config import ConfigManager
from torchtitan.tools.logging import init_logger, logger
from torchtitan.trainer import Trainer

import holdfast_runtime as holdfast
from holdfast_runtime.data import Dataset, Source

Batch = tuple[dict[str, torch.Tensor], torch.Tensor]
SEED = 1


class MappedTokens(BaseDataLoader):
    """Batches by number and data-parallel rank."""

    @dataclass(kw_only=True, slots=True)
    class Config(BaseDataLoader.Config):
        pass

    def __init__(self, config: Config, *, dp_world_size: int, seq_len: int, local_batch_size: int, **_: Any) -> None:
        assert config.dataset_path is not None
        self.data = Dataset(
            sources=[Source("text", [config.dataset_path])],
            context=seq_len,
            batch_size=local_batch_size,
            world_size=dp_world_size,
            seed=SEED,
        )

    def batches(self, first: int, count: int, *, rank: int) -> Iterator[Batch]:
        """Batches of one update."""
        for number in range(first, first + count):
            inputs, targets = self.data.batch(number, rank).torch()
            positions = torch.arange(inputs.shape[1]).expand(inputs.shape).contiguous()
            yield {"input": inputs, "positions": positions}, targets

    def __iter__(self) -> Iterator[Batch]:
        raise NotImplementedError("a batch is a function of the step; see batches()")

    def state_dict(self) -> dict[str, Any]:
        return {}

    def load_state_dict(self, state: dict[str, Any]) -> None: ...


class NoTokenizer(BaseTokenizer):
    """The data is tokens already."""

    @dataclass(kw_only=True, slots=True)
    class Config(BaseTokenizer.Config):
        pass

    def __init__(self, **_: Any) -> None:
        super().__init__()

    def encode(self, *_: Any, **__: Any) -> list[int]:
        raise NotImplementedError

    def decode(self, *_: Any, **__: Any) -> str:
        raise NotImplementedError

    def get_vocab_size(self) -> int:
        raise NotImplementedError


class InPlace:
    """Replaces optimizer and schedule steps by the step of ``Run``."""

    def __init__(self, trainer: "HoldfastTrainer", inner: Any, *, updates: bool) -> None:
        self._trainer, self._inner, self._updates = trainer, inner, updates

    def step(self) -> None:
        if self._updates:
            self._trainer.update()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)


class HoldfastTrainer(Trainer):
    """One model part and one optimizer."""

    def forward_backward_step(self, **given: Any) -> torch.Tensor:
        loss = super().forward_backward_step(**given)
        if not self.parallel_dims.pp_enabled or self.pp_has_last_stage:
            self.loss = self.loss + loss.detach()
        return loss

    def update(self) -> None:
        """The loss is the sum over ranks of torchtitan's, divided by all tokens."""
        self.current.update(self.loss * self.run.world_size / self.parallel_dims.tp)

    def train(self) -> None:
        if len(self.model_parts) != 1 or len(self.optimizers) != 1:
            raise SystemExit("allowed: one model part and one kind of optimizer, such as 1F1B and AdamW")
        self.run = holdfast.Run(
            self.model_parts[0],
            next(iter(self.optimizers)),
            scheduler=self.lr_schedulers,
            state={"trainer": self},
            pipeline=self.pp_schedule if self.parallel_dims.pp_enabled else None,
        )
        self.optimizers = InPlace(self, self.optimizers, updates=True)
        self.lr_schedulers = InPlace(self, self.lr_schedulers, updates=False)
        count = self.gradient_accumulation_steps * self.num_pipeline_parallel_microbatches
        for step in self.run.steps(self.config.training.steps):
            self.current, self.step, self.loss = step, step.number + 1, torch.zeros((), device=self.device)
            with step:
                self.gc_handler.run(self.step)
                data = self.dataloader.batches(step.number * count, count, rank=self.run.data_rank)
                self.train_step(self.batch_generator(data))
        logger.info("Training completed")


def main() -> None:
    init_logger()
    config: Any = ConfigManager().parse_args()
    config.dataloader = MappedTokens.Config(dataset_path=config.dataloader.dataset_path)
    config.tokenizer = NoTokenizer.Config()
    config.validator.enable = config.checkpoint.enable = False
    config.debug.seed = SEED if config.debug.seed is None else config.debug.seed  # else it is a broadcast of rank 0's
    torch.autograd.set_multithreading_enabled(False)  # as torchtitan has it where it makes the groups itself
    holdfast.init_process_group()
    holdfast.device()  # sets LOCAL_RANK: that of a spare is of no rank
    trainer = HoldfastTrainer(config)
    trainer.train()
    trainer.close()


if __name__ == "__main__":
    main()
