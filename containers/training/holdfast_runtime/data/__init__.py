"""
Data that needs no loader: token files mapped into memory, batches computed from the step, a cache for decoders.

It needs numpy, and torch only in ``Batch.torch``. ``python -m holdfast_runtime.data`` builds the files.
"""

from holdfast_runtime.control import cache_folder, own_cache, remove_abandoned
from holdfast_runtime.data._cache import DecodedCache
from holdfast_runtime.data._dataset import Batch, Dataset, Source
from holdfast_runtime.data._format import NO_END, DataError, Header
from holdfast_runtime.data._packing import IGNORED
from holdfast_runtime.data._tokenizers import ByteTokenizer, Tokenizer, load_tokenizer
from holdfast_runtime.data._tokens import TokenFile, verify
from holdfast_runtime.data._writer import TokenWriter

__all__ = [
    "IGNORED",
    "NO_END",
    "Batch",
    "ByteTokenizer",
    "DataError",
    "Dataset",
    "DecodedCache",
    "Header",
    "Source",
    "TokenFile",
    "TokenWriter",
    "Tokenizer",
    "cache_folder",
    "load_tokenizer",
    "own_cache",
    "remove_abandoned",
    "verify",
]
