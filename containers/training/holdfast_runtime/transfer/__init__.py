"""State from rank to rank over TCP: in chunks, each with its checksum, all of it against the donor's digest."""

from holdfast_runtime.transfer.receiver import TransferError, receive
from holdfast_runtime.transfer.server import Offer, Server
from holdfast_runtime.transfer.state import Flat, flatten, local, read_skeleton, tensor_bytes, unflatten
from holdfast_runtime.transfer.wire import (
    CHUNK,
    CHUNK_BYTES,
    LENGTH,
    NONCE_BYTES,
    Header,
    Line,
    chunks_of,
    digest_of,
)

__all__ = [
    "CHUNK",
    "CHUNK_BYTES",
    "LENGTH",
    "NONCE_BYTES",
    "Flat",
    "Header",
    "Line",
    "Offer",
    "Server",
    "TransferError",
    "chunks_of",
    "digest_of",
    "flatten",
    "local",
    "read_skeleton",
    "receive",
    "tensor_bytes",
    "unflatten",
]
