"""
Tokenizers: bytes are built in, any other comes by import path.

A path such as ``package.module:name`` is a tokenizer, or a function or class that makes one without arguments.
"""

import importlib
from collections.abc import Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from holdfast_runtime.data.format import DataError

BYTES = "bytes"


@runtime_checkable
class Tokenizer(Protocol):
    """Interface of tokenizers: text of a document to tokens."""

    @property
    def vocabulary_size(self) -> int:
        """Tokens are 0 to vocabulary_size - 1."""

    @property
    def end_token(self) -> int:
        """Appended to each document; -1 for none."""

    def encode(self, text: str) -> Sequence[int] | npt.NDArray[Any]:
        """The tokens of a text, the end token not among them."""


class ByteTokenizer:
    """One token per byte of UTF-8, and 256 at the end of a document."""

    vocabulary_size = 257
    end_token = 256

    def encode(self, text: str) -> npt.NDArray[Any]:
        """The bytes."""
        return np.frombuffer(text.encode(), dtype=np.uint8)


def load_tokenizer(name: str) -> Tokenizer:
    """
    A tokenizer by name: ``bytes``, or an import path.

    Raises:
        DataError: there is none of that name, or it lacks a part of ``Tokenizer``.
    """
    if name == BYTES:
        return ByteTokenizer()
    module_name, colon, attribute = name.partition(":")
    if not colon or not module_name or not attribute:
        raise DataError(f"unknown tokenizer {name}; give {BYTES} or an import path such as package.module:name")
    try:
        found = getattr(importlib.import_module(module_name), attribute)
    except (ImportError, AttributeError) as error:
        raise DataError(f"tokenizer {name} cannot be imported: {error}") from error
    made = found() if isinstance(found, type) or not hasattr(found, "encode") else found
    if not isinstance(made, Tokenizer):
        raise DataError(f"tokenizer {name} needs encode(text), vocabulary_size and end_token (-1 for none)")
    return made
