"""The small model of the tests of sharded and elastic jobs: no two of its parameters are cut alike, unless asked."""

import os

import torch
from torch import Tensor, nn

WIDTH, CONTEXT, BATCH, LAYERS = 24, 10, 4, 4
VOCABULARY = 60 if os.environ.get("EVEN_ROWS") else 61
"""Even: two ranks have as many rows of each parameter."""


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(WIDTH)
        self.up = nn.Linear(WIDTH, 4 * WIDTH)
        self.down = nn.Linear(4 * WIDTH, WIDTH)
        self.mix = nn.Linear(WIDTH, WIDTH)
        self.dropout = nn.Dropout(0.1)

    def forward(self, values: Tensor) -> Tensor:
        values = values + self.mix(torch.cumsum(values, 1) / 8)
        added: Tensor = self.dropout(self.down(nn.functional.gelu(self.up(self.norm(values)))))
        return values + added


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embed: nn.Module | None = nn.Embedding(VOCABULARY, WIDTH)
        self.layers = nn.ModuleList(Block() for _ in range(LAYERS))
        self.head: nn.Module | None = nn.Linear(WIDTH, VOCABULARY)

    def forward(self, values: Tensor) -> Tensor:
        values = self.embed(values) if self.embed is not None else values
        for layer in self.layers:
            values = layer(values)
        return self.head(values) if self.head is not None else values


def loss_of(logits: Tensor, targets: Tensor) -> Tensor:
    return nn.functional.cross_entropy(logits.flatten(0, 1), targets.flatten())
