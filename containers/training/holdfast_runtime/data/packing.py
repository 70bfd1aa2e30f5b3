"""
Cutting a stream of documents into sequences of one length, all tokens used and no sequence padded but the last.

Documents follow each other inside a sequence and may go on in the next. ``segments`` and ``positions`` tell a model
where documents begin, so that attention need not cross them, and no target crosses one: the first token of a document
is never to be predicted from the document before it, which has nothing to do with it.
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
        """Rows of padding."""
        shape = (count, context)
        return Rows(*(np.full(shape, fill, dtype=np.int64) for fill in (0, IGNORED, 0, 0)))

    def fill(self, row: int, file: TokenFile, sequence: int) -> None:
        """Put one sequence of a file into a row."""
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
    """How many sequences a file gives. The last may be padded; a token that only ends one is no sequence."""
    return max(1, -(-(file.header.tokens - 1) // context))
