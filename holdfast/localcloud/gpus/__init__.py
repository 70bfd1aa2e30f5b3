"""Stand-in for NVIDIA's driver on nodes with GPUs: a compiled library that answers from a text file of the node."""

from holdfast.localcloud.gpus.answers import ANSWERS, addresses, changed, healthy
from holdfast.localcloud.gpus.library import Gpus, compile_library

__all__ = ["ANSWERS", "Gpus", "addresses", "changed", "compile_library", "healthy"]
