"""
Sums over ranks in a step of replicas: gradients while backward runs, the vote, and the buffers that all have alike.
"""

from holdfast_runtime.inprocess.reduction import vote
from holdfast_runtime.inprocess.reduction.buffers import SharedBuffers, packed, unpack
from holdfast_runtime.inprocess.reduction.reducer import BUCKET_BYTES, Reducer, layout

__all__ = ["BUCKET_BYTES", "Reducer", "SharedBuffers", "layout", "packed", "unpack", "vote"]
