"""The receiver's side: nothing counts before every chunk and the whole have been compared with the donor's numbers."""

import socket
import time
import zlib
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor

import torch
from torch import Tensor

from holdfast_runtime.faults import Injector
from holdfast_runtime.transfer._state import Flat, is_direct, read_skeleton, tensor_bytes
from holdfast_runtime.transfer._wire import (
    CHUNK,
    CHUNK_BYTES,
    Header,
    Request,
    WireError,
    digest_of,
    read_into,
    read_line,
    send_object,
)

CONNECT_S = 5.0


class TransferError(RuntimeError):
    """No donor could give the state. Says what each of them answered."""


def receive(
    donors: Sequence[tuple[str, int]],
    *,
    epoch: int,
    step: int,
    name: str = "replica",
    into: Callable[[int, torch.dtype, tuple[int, ...]], Tensor | None] = lambda _number, _dtype, _shape: None,
    deadline_s: float,
    faults: Injector | None = None,
) -> Flat:
    """
    The state of an epoch and step, from the first donor that gives it whole.

    Args:
        donors: Host and port of each, the best first.
        into: Where a tensor of this number, type and shape may be received; None: into a new one in host memory.
        deadline_s: For all of it.

    Raises:
        TransferError: no donor gave it. What was received into may be torn.
    """
    end = time.monotonic() + deadline_s
    problems = []
    for host, port in donors:
        left = end - time.monotonic()
        try:
            with socket.create_connection((host, port), timeout=max(0.001, min(CONNECT_S, left))) as connection:
                connection.settimeout(max(0.001, end - time.monotonic()))
                return _receive(connection, Request(epoch=epoch, step=step, name=name), into, faults or Injector())
        except (OSError, WireError, ValueError, TypeError) as error:
            problems.append(f"{host}:{port}: {error}")
    raise TransferError(f"no donor gave the state of step {step}: {'; '.join(problems) or 'there is none'}")


def _receive(
    connection: socket.socket,
    request: Request,
    into: Callable[[int, torch.dtype, tuple[int, ...]], Tensor | None],
    faults: Injector,
) -> Flat:
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    send_object(connection, request)
    header = Header(**read_line(connection))  # type: ignore[arg-type]
    if header.refusal:
        raise WireError(header.refusal)
    if (header.epoch, header.step) != (request.epoch, request.step):
        raise WireError(f"offered is epoch {header.epoch}, step {header.step}")
    checksums: list[int] = []
    checks: list[Future[None]] = []
    with ThreadPoolExecutor(1) as behind:

        def take(view: memoryview) -> None:
            length, checksum = CHUNK.unpack(_read(connection, CHUNK.size))
            if length != len(view):
                raise WireError(f"a chunk has {length} bytes, {len(view)} were due")
            read_into(connection, view)
            faults.point("copy-in")
            checksums.append(checksum)
            checks.append(behind.submit(_check, view, checksum, len(checksums)))

        skeleton = bytearray(header.skeleton_bytes)
        take(memoryview(skeleton))
        tensors = []
        for number, (kind, shape) in enumerate(header.tensors):
            dtype = getattr(torch, kind)
            place = into(number, dtype, tuple(shape))
            host = place if place is not None and is_direct(place) else torch.empty(tuple(shape), dtype=dtype)
            data = tensor_bytes(host)
            for start in range(0, len(data), CHUNK_BYTES):
                take(data[start : start + CHUNK_BYTES])
            if place is not None and place is not host:
                place.copy_(host)
            tensors.append(host if place is None else place)
        for check in checks:
            check.result()
    end, digest = CHUNK.unpack(_read(connection, CHUNK.size))
    if end != 0 or digest != digest_of(checksums, epoch=request.epoch, step=request.step):
        raise WireError("the digest of the whole is not the donor's")
    return Flat(skeleton=read_skeleton(bytes(skeleton)), tensors=tensors)


def _check(view: memoryview, checksum: int, number: int) -> None:
    found = zlib.crc32(view)
    if found != checksum:
        raise WireError(f"chunk {number} has the checksum {found:08x}, the donor's is {checksum:08x}")


def _read(connection: socket.socket, count: int) -> bytes:
    data = bytearray(count)
    read_into(connection, memoryview(data))
    return bytes(data)
