"""
Packing of documents into sequences of one length; only the last sequence is padded.

``segments`` and ``positions`` mark where documents begin, for attention. No target crosses a document's end.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from holdfast_runtime.data.tokens import TokenFile

IGNORED = -100
"""Target where nothing is to be predicted: the default ``ignore_index`` of torch's cross entropy."""

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Rows:
    """Sequences to be filled, one per row."""

    tokens: Ints
    targets: Ints
    segments: Ints
    """Number of the document within its row, from 0; padding is a segment of its own."""
    positions: Ints
    """Distance from the beginning of the document, or of the row when it begins before."""

    @staticmethod
    def empty(count: int, context: int) -> "Rows":
        shape = (count, context)
        return Rows(*(np.full(shape, fill, dtype=np.int64) for fill in (0, IGNORED, 0, 0)))

    def fill(self, row: int, file: TokenFile, sequence: int) -> None:
        context = self.tokens.shape[1]
        start = sequence * context
        file.check()
        window = file.tokens[start : start + context + 1].astype(np.int64)
        known = min(context, len(window))
        self.tokens[row, :known] = window[:known]
        self.targets[row, : len(window) - 1] = window[1:]
        first = int(np.searchsorted(file.offsets, start, side="right"))
        last = int(np.searchsorted(file.offsets, start + context, side="right"))
        begins = file.offsets[first:last].astype(np.int64) - start
        file.check()
        self.targets[row, begins - 1] = IGNORED
        inside = begins[begins < context]
        self.segments[row, inside] = 1
        np.cumsum(self.segments[row], out=self.segments[row])
        steps = np.arange(context)
        beginning = np.zeros(context, dtype=np.int64)
        beginning[inside] = inside
        self.positions[row] = steps - np.maximum.accumulate(beginning)


def sequence_count(file: TokenFile, context: int) -> int:
    return max(1, -(-(file.header.tokens - 1) // context))
