"""
What stands for NVIDIA's driver on a node whose type has GPUs: its management library, compiled from source here, which
answers from a text file of the node. What the file says when something is wrong is for ``planting``.
"""

from holdfast.localcloud.gpus.answers import ANSWERS, addresses, changed, healthy
from holdfast.localcloud.gpus.library import Gpus, compile_library

__all__ = ["ANSWERS", "Gpus", "addresses", "changed", "compile_library", "healthy"]
