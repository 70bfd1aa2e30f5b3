"""Llama-style transformer in sizes from a laptop's to Llama 3 70B."""

import zlib
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.distributed.tensor import DTensor
from torch.nn.functional import cross_entropy, scaled_dot_product_attention, silu


@dataclass(frozen=True)
class Size:
    """As in its paper (arXiv 2407.21783, table 3)."""

    width: int
    layers: int
    heads: int
    kv_heads: int
    hidden: int
    context: int
    vocabulary: int = 128_256


SIZES = {
    "tiny": Size(width=32, layers=4, heads=4, kv_heads=2, hidden=64, context=16, vocabulary=257),
    "8b": Size(width=4096, layers=32, heads=32, kv_heads=8, hidden=14_336, context=8192),
    "70b": Size(width=8192, layers=80, heads=64, kv_heads=8, hidden=28_672, context=8192),
}


class Attention(nn.Module):
    """
    Grouped-query attention with rotary positions. Heads are counted from the inputs: fewer under tensor parallelism.
    """

    def __init__(self, size: Size) -> None:
        super().__init__()
        self.head = size.width // size.heads
        self.wq = nn.Linear(size.width, size.heads * self.head, bias=False)
        self.wk = nn.Linear(size.width, size.kv_heads * self.head, bias=False)
        self.wv = nn.Linear(size.width, size.kv_heads * self.head, bias=False)
        self.wo = nn.Linear(size.heads * self.head, size.width, bias=False)

    def forward(self, values: Tensor) -> Tensor:
        q, k, v = (
            part.unflatten(-1, (-1, self.head)).transpose(1, 2)
            for part in (self.wq(values), self.wk(values), self.wv(values))
        )
        found = scaled_dot_product_attention(rotated(q), rotated(k), v, is_causal=True, enable_gqa=True)
        projected: Tensor = self.wo(found.transpose(1, 2).flatten(-2))
        return projected


class FeedForward(nn.Module):
    """Gated, as in SwiGLU."""

    def __init__(self, size: Size) -> None:
        super().__init__()
        self.gate = nn.Linear(size.width, size.hidden, bias=False)
        self.up = nn.Linear(size.width, size.hidden, bias=False)
        self.down = nn.Linear(size.hidden, size.width, bias=False)

    def forward(self, values: Tensor) -> Tensor:
        found: Tensor = self.down(silu(self.gate(values)) * self.up(values))
        return found


class Layer(nn.Module):
    def __init__(self, size: Size) -> None:
        super().__init__()
        self.attention_norm = nn.RMSNorm(size.width)
        self.attention = Attention(size)
        self.norm = nn.RMSNorm(size.width)
        self.feed_forward = FeedForward(size)

    def forward(self, values: Tensor) -> Tensor:
        values = values + self.attention(self.attention_norm(values))
        found: Tensor = values + self.feed_forward(self.norm(values))
        return found


class Llama(nn.Module):
    """
    The model, or one stage of a pipeline, with the parameter names of the whole.

    Args:
        stage: Number and count. Default: all of it
    """

    def __init__(self, size: Size, *, stage: tuple[int, int] = (0, 1)) -> None:
        super().__init__()
        number, stages = stage
        mine = range(number * size.layers // stages, (number + 1) * size.layers // stages)
        self.embed = nn.Embedding(size.vocabulary, size.width) if number == 0 else None
        self.layers = nn.ModuleDict({str(layer): Layer(size) for layer in mine})
        self.norm = nn.RMSNorm(size.width) if number == stages - 1 else None
        self.head = nn.Linear(size.width, size.vocabulary, bias=False) if number == stages - 1 else None

    def forward(self, values: Tensor) -> Tensor:
        if self.embed is not None:
            values = self.embed(values)
        for layer in self.layers.values():
            values = layer(values)
        return self.head(self.norm(values)) if self.head is not None and self.norm is not None else values


def loss_of(logits: Tensor, targets: Tensor) -> Tensor:
    """Mean over the tokens; targets of -100 do not count."""
    return cross_entropy(logits.flatten(0, 1).float(), targets.flatten())


def rotated(heads: Tensor) -> Tensor:
    """Rotary positions, with the base of Llama 3."""
    length, size = heads.shape[-2:]
    rates = 500_000.0 ** -(torch.arange(0, size, 2, device=heads.device) / size)
    angles = torch.arange(length, device=heads.device)[:, None] * rates
    cos, sin = angles.cos().to(heads.dtype), angles.sin().to(heads.dtype)
    first, second = heads.chunk(2, -1)
    return torch.cat((first * cos - second * sin, second * cos + first * sin), -1)


@torch.no_grad()
def materialize(model: nn.Module, *, device: torch.device, seed: int) -> None:
    """Move this rank's part from meta to memory, without waiting for others. Values follow from name and place."""
    model.to_empty(device=device)
    for name, parameter in model.named_parameters():
        local, place = parameter.data, list[int]()
        if isinstance(parameter, DTensor):
            at = parameter.device_mesh.get_coordinate() or ()
            local = parameter.to_local()
            place = [at[dim] for dim, kind in enumerate(parameter.placements) if not kind.is_replicate()]
        if parameter.ndim == 1:
            local.fill_(1.0)
        else:
            own = torch.Generator(device).manual_seed(zlib.crc32(f"{seed} {name} {place}".encode()))
            local.normal_(std=0.02, generator=own)
