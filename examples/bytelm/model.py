"""A small decoder-only transformer over bytes: about 0.4 million parameters, nothing but torch.nn.

It is small so that four ranks learn something in half a minute on two CPU cores; the shape of the code is that of a
large one.
"""

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

VOCABULARY = 256


@dataclass(frozen=True, kw_only=True)
class ModelConfig:
    context: int = 128
    width: int = 128
    heads: int = 4
    layers: int = 2


class Block(nn.Module):
    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.heads = config.heads
        self.attention_norm = nn.LayerNorm(config.width)
        self.query_key_value = nn.Linear(config.width, 3 * config.width, bias=False)
        self.attention_out = nn.Linear(config.width, config.width, bias=False)
        self.feed_norm = nn.LayerNorm(config.width)
        self.feed_in = nn.Linear(config.width, 4 * config.width)
        self.feed_out = nn.Linear(4 * config.width, config.width)

    def forward(self, hidden: Tensor) -> Tensor:
        hidden = hidden + self._attend(self.attention_norm(hidden))
        widened = functional.gelu(self.feed_in(self.feed_norm(hidden)), approximate="tanh")
        fed: Tensor = self.feed_out(widened)
        return hidden + fed

    def _attend(self, hidden: Tensor) -> Tensor:
        batch, length, width = hidden.shape
        parts = self.query_key_value(hidden).view(batch, length, 3, self.heads, width // self.heads)
        query, key, value = parts.permute(2, 0, 3, 1, 4)
        mixed = functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        out: Tensor = self.attention_out(mixed.transpose(1, 2).reshape(batch, length, width))
        return out


class ByteTransformer(nn.Module):
    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.token_embedding = nn.Embedding(VOCABULARY, config.width)
        self.position_embedding = nn.Embedding(config.context, config.width)
        self.blocks = nn.Sequential(*(Block(config) for _ in range(config.layers)))
        self.norm = nn.LayerNorm(config.width)
        self.head = nn.Linear(config.width, VOCABULARY, bias=False)
        self.apply(_initialize)

    def forward(self, tokens: Tensor) -> Tensor:
        positions = torch.arange(tokens.shape[1], device=tokens.device)
        hidden = self.token_embedding(tokens) + self.position_embedding(positions)
        logits: Tensor = self.head(self.norm(self.blocks(hidden)))
        return logits

    def loss(self, tokens: Tensor, targets: Tensor) -> Tensor:
        """Mean cross entropy in nats per byte; log(256) = 5.545 for an untrained model."""
        return functional.cross_entropy(self(tokens).view(-1, VOCABULARY), targets.reshape(-1))


def _initialize(module: nn.Module) -> None:
    if isinstance(module, (nn.Linear, nn.Embedding)):
        nn.init.normal_(module.weight, std=0.02)
    if isinstance(module, nn.Linear) and module.bias is not None:
        nn.init.zeros_(module.bias)


def build_model(config: ModelConfig, *, seed: int) -> ByteTransformer:
    """Initialised model; the same seed gives the same parameters."""
    torch.manual_seed(seed)
    return ByteTransformer(config)
