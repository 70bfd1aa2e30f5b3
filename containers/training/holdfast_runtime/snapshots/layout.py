"""
Layout of a shard's tensors in one block of host memory, and the blocks.

A block is filled and sent as a whole, so nothing in the path of a snapshot works tensor by tensor but the copy itself.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from holdfast_runtime.checksums import checksum_of
from holdfast_runtime.runs import RunFolderError, claim

CHUNK_BYTES = 4 << 20
_ALIGNMENT = 64


class SnapshotError(Exception):
    """A snapshot or checkpoint that cannot be taken or used, and why."""


def claim_for_training(folder: Path) -> None:
    try:
        claim(folder)
    except RunFolderError as error:
        raise SnapshotError(str(error)) from error


@dataclass(frozen=True)
class Entry:
    """One tensor of a shard."""

    name: str
    dtype: str
    """As in torch, such as bfloat16."""
    shape: tuple[int, ...]
    offset: int
    """In the block, in bytes."""

    def of(self, block: Tensor) -> Tensor:
        dtype: torch.dtype = getattr(torch, self.dtype)
        count = dtype.itemsize
        for size in self.shape:
            count *= size
        return block[self.offset : self.offset + count].view(dtype).view(self.shape)


@dataclass(frozen=True)
class Layout:
    """The tensors of a shard in their order."""

    entries: tuple[Entry, ...]
    size: int
    """Of the block, in bytes."""

    @staticmethod
    def of(tensors: Mapping[str, Tensor]) -> "Layout":
        entries = []
        offset = 0
        for name, tensor in tensors.items():
            entries.append(Entry(name, str(tensor.dtype).removeprefix("torch."), tuple(tensor.shape), offset))
            offset += tensor.numel() * tensor.element_size()
            offset += -offset % _ALIGNMENT
        return Layout(tuple(entries), offset)

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @staticmethod
    def from_json(value: Any) -> "Layout":
        try:
            entries = tuple(
                Entry(str(item["name"]), str(item["dtype"]), tuple(map(int, item["shape"])), int(item["offset"]))
                for item in value["entries"]
            )
            layout = Layout(entries, int(value["size"]))
        except (KeyError, TypeError, ValueError) as error:
            raise SnapshotError(f"not the layout of a shard: {error!r}") from error
        for entry in entries:
            dtype = getattr(torch, entry.dtype, None)
            if not isinstance(dtype, torch.dtype) or min(entry.shape, default=0) < 0 or entry.offset < 0:
                raise SnapshotError(f"not the layout of a shard: {entry}")
        return layout


@dataclass(frozen=True)
class Label:
    """Label of a block."""

    rank: int
    step: int
    layout: Layout
    checksums: tuple[int, ...]
    """Of each chunk of the block, computed where the shard came from."""
    extra: bytes
    """What is no tensor."""
    digest: str = field(default="")
    """Of all the above; with the checksums, of the contents too."""

    def sealed(self) -> "Label":
        return replace(self, digest=self._digest())

    def check(self) -> None:
        if self.digest != self._digest():
            raise SnapshotError(f"the label of rank {self.rank}'s shard of step {self.step} does not match its digest")

    def _digest(self) -> str:
        parts = json.dumps([self.rank, self.step, self.layout.to_json(), self.checksums], sort_keys=True).encode()
        return hashlib.blake2b(parts + self.extra, digest_size=16).hexdigest()


class Block:
    """Host memory for one shard, page-locked when there is CUDA, so that a GPU writes to it by itself."""

    def __init__(self) -> None:
        self.label: Label | None = None
        """What it holds; None while it is empty or being written."""
        self.data = torch.empty(0, dtype=torch.uint8)

    @property
    def step(self) -> int:
        """Of what it holds; -1 when there is nothing."""
        return -1 if self.label is None else self.label.step

    def clear(self, size: int) -> None:
        self.label = None
        if len(self.data) != size:
            self.data = torch.empty(0, dtype=torch.uint8)
            self.data = torch.empty(size, dtype=torch.uint8, pin_memory=torch.cuda.is_available())

    def chunks(self) -> list[memoryview]:
        whole = self.data.numpy().data
        return [whole[start : start + CHUNK_BYTES] for start in range(0, len(whole), CHUNK_BYTES)]

    def checksums(self) -> tuple[int, ...]:
        """Of each chunk. Other threads run meanwhile."""
        return tuple(checksum_of([chunk]) for chunk in self.chunks())


class Pair:
    """Two blocks for the shards of one rank: while one is written, the other is whole."""

    def __init__(self) -> None:
        self.blocks = (Block(), Block())

    def find(self, step: int) -> Block | None:
        return next((block for block in self.blocks if block.label is not None and block.step == step), None)

    def other(self, keep: int) -> Block:
        first, second = self.blocks
        return second if first.step == keep else first

    def steps(self) -> list[int]:
        return sorted({block.step for block in self.blocks if block.label is not None})

    def forget_after(self, step: int) -> None:
        for block in self.blocks:
            if block.step > step:
                block.label = None
