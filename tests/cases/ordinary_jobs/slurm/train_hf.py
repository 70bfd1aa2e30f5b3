"""A GPT-2 of a few thousand weights, made from a configuration, under the Trainer."""

from dataclasses import dataclass
from typing import Any

import torch
from torch.utils.data import Dataset
from transformers import GPT2Config, GPT2LMHeadModel, HfArgumentParser, Trainer, TrainingArguments


@dataclass
class ModelArguments:
    config_overrides: str


class Numbers(Dataset[Any]):
    """Sequences that count."""

    def __len__(self) -> int:
        return 64

    def __getitem__(self, index: int) -> dict[str, torch.Tensor]:
        tokens = (torch.arange(32) + index) % 128
        return {"input_ids": tokens, "labels": tokens}


model_arguments, training = HfArgumentParser((ModelArguments, TrainingArguments)).parse_args_into_dataclasses()
config = GPT2Config(vocab_size=128, bos_token_id=0, eos_token_id=0)
config.update_from_string(model_arguments.config_overrides)
trainer = Trainer(model=GPT2LMHeadModel(config), args=training, train_dataset=Numbers())
result = trainer.train()
if trainer.is_world_process_zero():
    trainer.save_model()
    print(f"trained {result.global_step} steps on {training.world_size} processes, finite: {result.training_loss < 99}")
