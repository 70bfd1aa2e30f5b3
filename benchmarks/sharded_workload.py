"""What ``sharded.py`` trains: a transformer of 45.6 million parameters by fully_shard, 137 MB of state at each of 4."""

import os

import torch
from torch import Tensor, nn
from torch.distributed.fsdp import fully_shard
from torch.nn import functional

WIDTH, LAYERS, HEADS, VOCABULARY, LENGTH, BATCH = 768, 6, 12, 2048, 32, 1


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.ln1, self.ln2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.qkv = nn.Linear(WIDTH, 3 * WIDTH)
        self.proj = nn.Linear(WIDTH, WIDTH)
        self.up = nn.Linear(WIDTH, 4 * WIDTH)
        self.down = nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x: Tensor) -> Tensor:
        batch, length, width = x.shape
        heads = self.qkv(self.ln1(x)).view(batch, length, 3, HEADS, width // HEADS).permute(2, 0, 3, 1, 4)
        query, key, value = heads
        found = functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        x = x + self.proj(found.transpose(1, 2).reshape(batch, length, width))
        fed: Tensor = self.down(functional.gelu(self.up(self.ln2(x))))
        return x + fed


class Model(nn.Module):
    """Token ids (batch, length + 1) to the mean loss of predicting each from those before it."""

    def __init__(self, layers: int = LAYERS) -> None:
        super().__init__()
        self.emb = nn.Embedding(VOCABULARY, WIDTH)
        self.blocks = nn.ModuleList(Block() for _ in range(layers))
        self.head = nn.Linear(WIDTH, VOCABULARY)

    def forward(self, tokens: Tensor) -> Tensor:
        x = self.emb(tokens[:, :-1])
        for block in self.blocks:
            x = block(x)
        return functional.cross_entropy(self.head(x).flatten(0, 1), tokens[:, 1:].flatten())


def build(layers: int = LAYERS) -> Model:
    """Sharded over the default group, each block for itself."""
    torch.set_num_threads(1)
    torch.manual_seed(1234)
    model = Model(layers)
    for block in model.blocks:
        fully_shard(block)
        if os.environ.get("BENCHMARK_COMPILE"):
            block.compile(backend="aot_eager")
    fully_shard(model)
    return model


def optimizer_of(model: nn.Module) -> torch.optim.Optimizer:
    return torch.optim.Adam(model.parameters(), lr=1e-4)


def batch_for(step: int, rank: int) -> Tensor:
    generator = torch.Generator().manual_seed(1_000_003 * step + rank)
    return torch.randint(0, VOCABULARY, (BATCH, LENGTH + 1), generator=generator)
