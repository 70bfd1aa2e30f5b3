"""Small data for scripts of other repositories: files in the folder in which they run, or in place of a download."""

import pickle
import random
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import Dataset, TensorDataset

WORDS = ["a", "the", "one", "cat", "dog", "sees", "hears", "likes", "runs", "sits", "near", "far", "red", "blue"]


def sentences(count: int, *, seed: int) -> str:
    chance = random.Random(seed)
    return "".join(" ".join(chance.choice(WORDS) for _ in range(6)) + "\n" for _ in range(count))


def results(work: Path, source: Path) -> None:
    (work / "results").mkdir()


def checkpoint(work: Path, source: Path) -> None:
    (work / "checkpoint").mkdir()


def corpus(work: Path, source: Path) -> None:
    (work / "corpus").mkdir()
    for number, (name, count) in enumerate({"train": 120, "valid": 20, "test": 20}.items()):
        (work / "corpus" / f"{name}.txt").write_text(sentences(count, seed=number))


def tokens(work: Path, source: Path) -> None:
    shutil.copy(source / "configurator.py", work)
    folder = work / "data" / "small"
    folder.mkdir(parents=True)
    for seed, name in enumerate(("train", "val")):
        steps = np.random.default_rng(seed).integers(1, 3, 4000)
        (steps.cumsum() % 24).astype(np.uint16).tofile(folder / f"{name}.bin")
    (folder / "meta.pkl").write_bytes(pickle.dumps({"vocab_size": 24}))


def names(work: Path, source: Path) -> None:
    chance = random.Random(0)
    lines = ["".join(chance.choice("abcde") for _ in range(chance.randrange(2, 7))) for _ in range(300)]
    (work / "names.txt").write_text("\n".join(lines))


def verdict(work: Path, source: Path) -> None:
    (work / "the-verdict.txt").write_text(sentences(40, seed=5))


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
