"""Data, models and writers for scripts of other repositories, in place of downloads and packages."""

from typing import Any

import torch
from prepared import WORDS, sentences
from torch import Tensor
from torch.utils.data import Dataset, TensorDataset


def get_training_set(upscale_factor: int) -> Dataset[tuple[Tensor, ...]]:
    return _images(48, upscale_factor, seed=0)


def get_test_set(upscale_factor: int) -> Dataset[tuple[Tensor, ...]]:
    return _images(16, upscale_factor, seed=1)


def _images(count: int, factor: int, *, seed: int) -> Dataset[tuple[Tensor, ...]]:
    large = torch.rand((count, 1, 16, 16), generator=torch.Generator().manual_seed(seed))
    return TensorDataset(torch.nn.functional.avg_pool2d(large, factor), large)


def load_graph() -> tuple[Tensor, ...]:
    """A graph in place of Cora: adjacency, features, labels and three parts."""
    own = torch.Generator().manual_seed(0)
    labels = torch.arange(300) % 7
    features = torch.rand((300, 64), generator=own)
    features[torch.arange(300), labels] += 1.0
    edges = torch.rand((300, 300), generator=own) < 0.02
    adjacency = (edges | edges.T | torch.eye(300, dtype=torch.bool)).float()
    parts = torch.arange(300).split(100)
    return ((adjacency / adjacency.sum(1, keepdim=True)).to_sparse_coo(), features, labels, *parts)


def accuracy(output: Tensor, labels: Tensor) -> Tensor:
    return (output.argmax(1) == labels).double().mean()


class Sentences(Dataset[tuple[Tensor, Tensor]]):
    """In place of WikiText2."""

    def __init__(self) -> None:
        text = sentences(200, seed=7).split()
        self.vocab_size, self._block = len(WORDS), 8
        self._data = torch.tensor([WORDS.index(word) for word in text])

    def __len__(self) -> int:
        return len(self._data) // self._block - 1

    def __getitem__(self, index: int) -> tuple[Tensor, Tensor]:
        first = index * self._block
        return self._data[first : first + self._block], self._data[first + 1 : first + self._block + 1]


class SummaryWriter:
    """Of TensorBoard: writes nothing."""

    def __init__(self, *_: Any, **__: Any) -> None:
        pass

    def __getattr__(self, name: str) -> Any:
        return lambda *_, **__: None


def tiny_llama() -> Any:
    """In place of a download from the hub."""
    from transformers import LlamaConfig, LlamaForCausalLM

    sizes = {"hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 2}
    return LlamaForCausalLM(LlamaConfig(vocab_size=260, num_attention_heads=2, num_key_value_heads=2, **sizes))


def byte_tokenizer(longest: int) -> Any:
    """A token per byte."""
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    made = Tokenizer(models.BPE(vocab={letter: number for number, letter in enumerate(letters)}, merges=[]))
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    return PreTrainedTokenizerFast(tokenizer_object=made, model_max_length=longest, padding_side="right")
