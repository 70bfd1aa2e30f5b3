"""State from rank to rank over TCP: in chunks, each with its checksum, all of it against the donor's digest."""

from holdfast_runtime.transfer._receive import TransferError, receive
from holdfast_runtime.transfer._serve import Server
from holdfast_runtime.transfer._state import Flat, flatten, tensor_bytes, unflatten

__all__ = ["Flat", "Server", "TransferError", "flatten", "receive", "tensor_bytes", "unflatten"]
