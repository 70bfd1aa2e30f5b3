"""What every runtime here trains: a transformer of 11.4 million parameters, 46 MB of them and 91 MB of Adam's state."""

import hashlib

import torch
from torch import Tensor, nn
from torch.nn import functional

WIDTH, LAYERS, HEADS, VOCABULARY, LENGTH, BATCH = 384, 6, 6, 1024, 32, 2


class Block(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.ln1, self.ln2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv = nn.Linear(width, 3 * width)
        self.proj = nn.Linear(width, width)
        self.up = nn.Linear(width, 4 * width)
        self.down = nn.Linear(4 * width, width)

    def forward(self, x: Tensor) -> Tensor:
        batch, length, width = x.shape
        heads = self.qkv(self.ln1(x)).view(batch, length, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4)
        query, key, value = heads
        found = functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        x = x + self.proj(found.transpose(1, 2).reshape(batch, length, width))
        fed: Tensor = self.down(functional.gelu(self.up(self.ln2(x))))
        return x + fed


class Model(nn.Module):
    """Token ids (batch, length + 1) to the mean loss of predicting each from those before it."""

    def __init__(self, *, width: int = WIDTH, heads: int = HEADS, vocabulary: int = VOCABULARY) -> None:
        super().__init__()
        self.emb = nn.Embedding(vocabulary, width)
        self.blocks = nn.Sequential(*[Block(width, heads) for _ in range(LAYERS)])
        self.head = nn.Linear(width, vocabulary)

    def forward(self, tokens: Tensor) -> Tensor:
        logits = self.head(self.blocks(self.emb(tokens[:, :-1])))
        return functional.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten())


def build_model() -> Model:
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(mode=True)
    torch.manual_seed(1234)
    return Model()


def build_optimizer(model: nn.Module) -> torch.optim.Optimizer:
    return torch.optim.Adam(model.parameters(), lr=1e-4)


def batch_for(step: int, rank: int) -> Tensor:
    generator = torch.Generator().manual_seed(1_000_003 * step + rank)
    return torch.randint(0, VOCABULARY, (BATCH, LENGTH + 1), generator=generator)


def digest(model: nn.Module) -> str:
    found = hashlib.sha256()
    for parameter in model.state_dict().values():
        found.update(parameter.detach().contiguous().numpy().tobytes())
    return found.hexdigest()[:16]
