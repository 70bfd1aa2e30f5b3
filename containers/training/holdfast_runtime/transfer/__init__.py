"""State from rank to rank over TCP: in chunks, each with its checksum, all of it against the donor's digest."""

from holdfast_runtime.transfer._receive import TransferError, receive
from holdfast_runtime.transfer._serve import Offer, Server
from holdfast_runtime.transfer._state import Flat, flatten, read_skeleton, tensor_bytes, unflatten

__all__ = [
    "Flat",
    "Offer",
    "Server",
    "TransferError",
    "flatten",
    "read_skeleton",
    "receive",
    "tensor_bytes",
    "unflatten",
]
