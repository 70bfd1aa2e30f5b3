"""A token file mapped into memory: opened in microseconds, shared by all ranks of a node."""

import hashlib
import mmap
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from holdfast_runtime.data.format import DIGEST_BYTES, HEADER_BYTES, OFFSET, DataError, Header, parse_header

CHUNK_BYTES = 8 << 20


@dataclass(frozen=True)
class TokenFile:
    """Tokens and where their documents begin. Open it with ``TokenFile.open``."""

    path: Path
    header: Header
    tokens: npt.NDArray[Any]
    """All of them, in the file's type, read-only."""
    offsets: npt.NDArray[np.uint64]
    """Of the documents, and the number of tokens last."""
    mapped: mmap.mmap
    """What both of them are in."""

    @staticmethod
    def open(path: str | Path) -> "TokenFile":
        """
        Map a file. Takes no longer for a large one.

        Raises:
            DataError: it is missing, no token file, damaged in its header, or not as long as its header says.
        """
        path = Path(path)
        header = read_header(path)
        try:
            with path.open("rb") as file:
                mapped = mmap.mmap(file.fileno(), header.size, access=mmap.ACCESS_READ)
        except (OSError, ValueError) as error:
            raise DataError(f"{path} cannot be mapped: {error}") from error
        tokens = np.frombuffer(mapped, header.dtype, count=header.tokens, offset=HEADER_BYTES)
        offsets = np.frombuffer(mapped, OFFSET, count=header.documents + 1, offset=header.offsets_at)
        if offsets[0] != 0 or offsets[-1] != header.tokens:
            raise DataError(f"the document offsets of {path} do not cover its tokens; copy or build the file again")
        return TokenFile(path, header, tokens, offsets, mapped)

    def check(self) -> None:
        """
        To be called before and after what was mapped is read.

        What is cut off a mapped file reads as zeros up to the end of its page, and ends the process (SIGBUS) behind it.

        Raises:
            DataError: the file is shorter than it was.
        """
        size = self.mapped.size()
        if size < self.header.size:
            raise DataError(
                f"{self.path} was cut short while it was in use: it has {size} bytes and had {self.header.size}; "
                "copy or build it again, and replace files by renaming others to their names"
            )

    def document(self, number: int) -> npt.NDArray[Any]:
        """The tokens of one document, the end token included."""
        return self.tokens[int(self.offsets[number]) : int(self.offsets[number + 1])]


def read_header(path: Path) -> Header:
    """The header of a file whose size is the one that it promises."""
    try:
        with path.open("rb") as file:
            header = parse_header(file.read(HEADER_BYTES), path=path)
        size = path.stat().st_size
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror}") from error
    if size != header.size:
        state = "truncated" if size < header.size else "too long"
        raise DataError(
            f"{path} is {state}: it has {size} bytes, its header requires {header.size}; copy or build it again"
        )
    if not header.tokens:
        raise DataError(f"{path} has no tokens")
    return header


def verify(path: str | Path, *, progress: Callable[[int], None] = lambda _: None) -> Header:
    """
    Read a whole file and compare it with its digest.

    Args:
        path: the file.
        progress: called with the number of bytes read so far. Default: nobody is told

    Raises:
        DataError: it differs, its documents are out of order, or a token is outside the vocabulary.
    """
    path = Path(path)
    header = read_header(path)
    digest = hashlib.blake2b(digest_size=DIGEST_BYTES)
    done = 0
    with path.open("rb") as file:
        file.seek(HEADER_BYTES)
        while chunk := file.read(CHUNK_BYTES):
            digest.update(chunk)
            done += len(chunk)
            progress(done)
    if digest.digest() != header.digest:
        raise DataError(f"the contents of {path} do not match its digest; copy or build the file again")
    opened = TokenFile.open(path)
    if not np.all(opened.offsets[1:] > opened.offsets[:-1]):
        raise DataError(f"{path} has documents that are empty or out of order; build it again")
    step = CHUNK_BYTES // header.dtype.itemsize
    for start in range(0, header.tokens, step):
        part = opened.tokens[start : start + step]
        if int(part.min()) < 0 or int(part.max()) >= header.vocabulary_size:
            raise DataError(f"{path} has tokens outside 0 to {header.vocabulary_size - 1}; build it again")
    return header
