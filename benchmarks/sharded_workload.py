"""What ``sharded.py`` trains: a transformer of 45.6 million parameters by fully_shard, 137 MB of state at each of 4."""

import os

import torch
from torch import Tensor
from torch.distributed.fsdp import fully_shard

from workload import LENGTH, Model

VOCABULARY, BATCH = 2048, 1


def build() -> Model:
    """Sharded over the default group, each block for itself."""
    torch.set_num_threads(1)
    torch.manual_seed(1234)
    model = Model(width=768, heads=12, vocabulary=VOCABULARY)
    for block in model.blocks:
        fully_shard(block)
        if os.environ.get("BENCHMARK_COMPILE"):
            block.compile(backend="aot_eager")
    fully_shard(model)
    return model


def batch_for(step: int, rank: int) -> Tensor:
    generator = torch.Generator().manual_seed(1_000_003 * step + rank)
    return torch.randint(0, VOCABULARY, (BATCH, LENGTH + 1), generator=generator)
