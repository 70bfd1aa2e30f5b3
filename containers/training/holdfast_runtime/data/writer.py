"""Writer of token files: one pass, memory for one document, renamed to the final name when complete and synced."""

import fcntl
import hashlib
import os
import struct
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from holdfast_runtime.data.format import (
    DIGEST_BYTES,
    HEADER_BYTES,
    OFFSET,
    DataError,
    Header,
    known_dtype,
    smallest_dtype,
)
from holdfast_runtime.data.tokens import CHUNK_BYTES


class TokenWriter(AbstractContextManager["TokenWriter"]):
    """
    Appends documents to a new token file, which appears under its name when the block ends without an error.

    Args:
        path: the file; one that is there is replaced at the end.
        vocabulary_size: tokens are 0 to vocabulary_size - 1.
        tokenizer: name of what made them.
        end_token: appended to each document; NO_END for none.
        dtype: of the tokens in the file: int16, uint16 or int32. Default: the narrowest that holds the vocabulary
    """

    def __init__(
        self,
        path: str | Path,
        *,
        vocabulary_size: int,
        tokenizer: str,
        end_token: int,
        dtype: str | None = None,
    ) -> None:
        self.path = Path(path)
        self.tokens = 0
        self.documents = 0
        self._vocabulary_size = vocabulary_size
        self._tokenizer = tokenizer
        self._end_token = end_token
        narrowest = smallest_dtype(vocabulary_size)
        self._dtype = narrowest if dtype is None else known_dtype(dtype)
        if np.iinfo(self._dtype).max < vocabulary_size - 1:
            raise DataError(f"{self._dtype.name} does not hold {vocabulary_size} tokens; use {narrowest.name}")
        self._digest = hashlib.blake2b(digest_size=DIGEST_BYTES)

    def __enter__(self) -> "TokenWriter":
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with ExitStack() as stack:
            self._partial = stack.enter_context(_partial_file(self.path))
            self._offsets = stack.enter_context(tempfile.TemporaryFile(dir=self.path.parent))
            self._partial.write(b"\0" * HEADER_BYTES)
            self._offsets.write(b"\0" * OFFSET.itemsize)
            self._stack = stack.pop_all()
        return self

    def add(self, tokens: Sequence[int] | npt.NDArray[Any]) -> None:
        """Append a document. One without tokens is left out."""
        values = np.asarray(tokens, dtype=np.int64)
        if not values.size:
            return
        low, high = int(values.min()), int(values.max())
        if low < 0 or high >= self._vocabulary_size:
            raise DataError(
                f"document {self.documents} has token {low if low < 0 else high}, and the tokens of "
                f"{self._tokenizer} are 0 to {self._vocabulary_size - 1}"
            )
        if self._end_token >= 0:
            values = np.append(values, self._end_token)
        self._write(values.astype(self._dtype).tobytes())
        self.tokens += len(values)
        self.documents += 1
        self._offsets.write(struct.pack("<Q", self.tokens))

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._stack:
            if kind is None:
                self._publish()

    def _write(self, data: bytes) -> None:
        self._digest.update(data)
        self._partial.write(data)

    def _publish(self) -> None:
        """Offsets, header, sync, rename: in this order, so that the name never stands for less than the whole."""
        if not self.documents:
            raise DataError(f"nothing to write to {self.path}: the input has no documents with text")
        self._write(b"\0" * (-self._partial.tell() % OFFSET.itemsize))
        self._offsets.seek(0)
        while chunk := self._offsets.read(CHUNK_BYTES):
            self._write(chunk)
        header = Header(
            dtype=self._dtype,
            tokens=self.tokens,
            documents=self.documents,
            vocabulary_size=self._vocabulary_size,
            end_token=self._end_token,
            tokenizer=self._tokenizer,
            digest=self._digest.digest(),
        )
        self._partial.seek(0)
        self._partial.write(header.pack())
        self._partial.flush()
        os.fsync(self._partial.fileno())
        os.replace(self._partial.name, self.path)  # noqa: PTH105 - the open file knows its name as text
        folder = os.open(self.path.parent, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


@contextmanager
def _partial_file(path: Path) -> Iterator[BinaryIO]:
    """The hidden file beside a path, gone at the end unless it has been renamed."""
    partial = path.parent / f".{path.name}.partial"
    with partial.open("ab") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise DataError(f"another build is writing {path}; wait for it, or choose another name") from error
        if not partial.exists() or not os.path.samestat(partial.stat(), os.fstat(file.fileno())):
            raise DataError(f"another build has just finished {path}; start again to replace it")
        try:
            file.truncate(0)
            with partial.open("r+b") as output:
                yield output
        finally:
            if partial.exists() and os.path.samestat(partial.stat(), os.fstat(file.fileno())):
                partial.unlink()
