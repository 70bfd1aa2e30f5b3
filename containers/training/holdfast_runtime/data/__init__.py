"""
Data without a loader: token files mapped into memory, batches computed from the step.

It needs numpy, and torch only in ``Batch.torch``. ``python -m holdfast_runtime.data`` builds the files.
"""

from holdfast_runtime.data.by_step import ByStep
from holdfast_runtime.data.commands import main
from holdfast_runtime.data.dataset import Batch, Dataset, Source
from holdfast_runtime.data.format import NO_END, DataError, Header
from holdfast_runtime.data.mixture import Mixture, whole_weights
from holdfast_runtime.data.packing import IGNORED
from holdfast_runtime.data.permutation import Permutation
from holdfast_runtime.data.tokenizers import ByteTokenizer, Tokenizer, load_tokenizer
from holdfast_runtime.data.tokens import TokenFile, verify
from holdfast_runtime.data.writer import TokenWriter

__all__ = [
    "IGNORED",
    "NO_END",
    "Batch",
    "ByStep",
    "ByteTokenizer",
    "DataError",
    "Dataset",
    "Header",
    "Mixture",
    "Permutation",
    "Source",
    "TokenFile",
    "TokenWriter",
    "Tokenizer",
    "load_tokenizer",
    "main",
    "verify",
    "whole_weights",
]
