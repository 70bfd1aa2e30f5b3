"""
Training data without a loader: what a rank trains on at a step is computed from seed, step, rank and microbatch.

There is no iterator, no worker process and no position to save: after a recovery the step number says it all, and a
process that takes over another's rank asks for the same batch and gets the same bytes. How ranks share a step is
arithmetic too, so the same global batch may be split among another number of ranks and stays the same set of samples.
"""

import hashlib
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from holdfast_runtime.data.format import DataError
from holdfast_runtime.data.mixture import Mixture
from holdfast_runtime.data.packing import Ints, Rows, sequence_count
from holdfast_runtime.data.permutation import Permutation
from holdfast_runtime.data.tokens import TokenFile

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True)
class Source:
    """One kind of data: token files that are shuffled together."""

    name: str
    """Part of the shuffle: a source of another name is in another order."""
    files: Sequence[str | Path]
    weight: float = 1.0
    """Its share of the samples, relative to the other sources. Default: all the same"""


@dataclass(frozen=True)
class Batch:
    """Rows of ``context`` tokens, int64, as numpy arrays."""

    tokens: Ints
    targets: Ints
    """The token that follows; IGNORED at the end of a document and in padding."""
    segments: Ints
    """Number of the document within its row; attention across different ones is attention across documents."""
    positions: Ints
    """Of the token within its document."""
    samples: Ints
    """What the rows are: source, epoch of the source, sample of the source. Names each sample ever used."""

    def torch(self) -> tuple["Tensor", "Tensor"]:
        """Inputs and targets as tensors on the CPU, without a copy."""
        import torch

        return torch.from_numpy(self.tokens), torch.from_numpy(self.targets)


@dataclass(frozen=True)
class _Opened:
    source: Source
    files: tuple[TokenFile, ...]
    ends: tuple[int, ...]
    """Sequences up to and including each file."""
    order: Permutation

    @staticmethod
    def open(source: Source, *, context: int, seed: int) -> "_Opened":
        if not source.files:
            raise DataError(f"source {source.name} has no files")
        files = tuple(TokenFile.open(path) for path in source.files)
        ends = tuple(accumulate(sequence_count(file, context) for file in files))
        return _Opened(source, files, ends, Permutation(ends[-1], seed, source.name))

    def locate(self, sample: int) -> tuple[TokenFile, int]:
        """The file of a sample and the number of its sequence there."""
        number = bisect_right(self.ends, sample)
        return self.files[number], sample - (self.ends[number - 1] if number else 0)


@dataclass(frozen=True, kw_only=True)
class Dataset:
    """
    Batches of a training run. It holds nothing that changes.

    Args:
        sources: what is mixed; the names differ.
        context: tokens per sequence.
        batch_size: sequences per microbatch and rank.
        world_size: ranks that share a step.
        microbatches: per step and rank. Default: 1
        seed: of the shuffles. Default: 0

    Raises:
        DataError: a file cannot be used, or the arguments do not fit each other.
    """

    sources: Sequence[Source]
    context: int
    batch_size: int
    world_size: int
    microbatches: int = 1
    seed: int = 0
    _opened: tuple[_Opened, ...] = field(init=False, repr=False, compare=False)
    _mixture: Mixture = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        for name in ("context", "batch_size", "world_size", "microbatches"):
            if getattr(self, name) < 1:
                raise DataError(f"{name} must be at least 1, got {getattr(self, name)}")
        names = [source.name for source in self.sources]
        if len(set(names)) < len(names):
            raise DataError(f"sources need different names, got {', '.join(names)}")
        opened = tuple(_Opened.open(source, context=self.context, seed=self.seed) for source in self.sources)
        object.__setattr__(self, "_opened", opened)
        object.__setattr__(self, "_mixture", Mixture([source.weight for source in self.sources], self.seed))

    @property
    def samples_per_step(self) -> int:
        """The global batch."""
        return self.world_size * self.microbatches * self.batch_size

    @property
    def vocabulary_size(self) -> int:
        """Smallest vocabulary that holds the tokens of all sources."""
        return max(file.header.vocabulary_size for item in self._opened for file in item.files)

    def epochs(self, step: int) -> Mapping[str, float]:
        """Passes over each source before a step, on average over whole blocks of the mixture."""
        samples = step * self.samples_per_step
        shares = zip(self._opened, self._mixture.weights, strict=True)
        return {item.source.name: samples * weight / self._mixture.block / item.order.n for item, weight in shares}

    def samples(self, step: int, rank: int, microbatch: int = 0) -> Ints:
        """Rows of a batch: source, epoch and sample of each sequence."""
        self._check(step, rank, microbatch)
        first = (step * self.world_size * self.microbatches + rank * self.microbatches + microbatch) * self.batch_size
        draws = self._mixture.draws(np.arange(first, first + self.batch_size, dtype=np.uint64))
        rows = np.empty((self.batch_size, 3), dtype=np.int64)
        rows[:, 0] = draws.sources
        for number, item in enumerate(self._opened):
            chosen = np.flatnonzero(draws.sources == number)
            if chosen.size:
                epoch, place = np.divmod(draws.turns[chosen], np.uint64(item.order.n))
                rows[chosen, 1] = epoch
                rows[chosen, 2] = item.order(place, epoch)
        return rows

    def batch(self, step: int, rank: int, microbatch: int = 0) -> Batch:
        """
        The batch of a rank at a step.

        Args:
            step: number of the update, from 0.
            rank: the logical rank, 0 to world_size - 1.
            microbatch: of that step and rank. Default: the first
        """
        samples = self.samples(step, rank, microbatch)
        rows = Rows.empty(self.batch_size, self.context)
        for row, (source, _, sample) in enumerate(samples.tolist()):
            rows.fill(row, *self._opened[source].locate(sample))
        return Batch(rows.tokens, rows.targets, rows.segments, rows.positions, samples)

    def identity(self) -> str:
        """Differs when any sample of any step would: data, order, mixture or global batch. 16 hex digits."""
        files = [(item.source.name, [file.header.digest.hex() for file in item.files]) for item in self._opened]
        parts = (self.seed, self.context, self.samples_per_step, self._mixture.weights, files)
        return hashlib.blake2b(repr(parts).encode(), digest_size=8).hexdigest()

    def state_dict(self) -> dict[str, str]:
        """Identity of the data for a checkpoint. The position is the step number."""
        return {"identity": self.identity()}

    def load_state_dict(self, state: Mapping[str, str]) -> None:
        """Refuse to go on with other data than before."""
        if state["identity"] != self.identity():
            raise DataError(
                f"the training state is of data {state['identity']} and this is {self.identity()}: files, order of the "
                "sources, weights, seed, context and global batch have to be the same; give the same, or "
                "start a new run"
            )

    def _check(self, step: int, rank: int, microbatch: int) -> None:
        limits = (("step", step, 2**40), ("rank", rank, self.world_size), ("microbatch", microbatch, self.microbatches))
        for name, value, limit in limits:
            if not 0 <= value < limit:
                raise ValueError(f"{name} must be 0 to {limit - 1}, got {value}")
