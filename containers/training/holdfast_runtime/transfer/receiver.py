"""The receiver's side: nothing counts before every chunk and the whole have been compared with the donor's numbers."""

import encodings.idna  # noqa: F401 - else imported by the first connection, with everybody waiting
import hmac
import math
import secrets
import socket
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from holdfast_runtime.checksums import checksum_of
from holdfast_runtime.faults import Injector
from holdfast_runtime.transfer.state import Flat, is_direct, read_skeleton, tensor_bytes
from holdfast_runtime.transfer.wire import (
    CHUNK,
    NONCE_BYTES,
    STALL_S,
    Header,
    Line,
    Request,
    WireError,
    chunks_of,
    digest_of,
)

CONNECT_S = 5.0
Place = Callable[[int, torch.dtype, tuple[int, ...]], "Tensor | None"]


class TransferError(RuntimeError):
    """No donor could give the state. Says what each of them answered."""


def receive(
    donors: Sequence[tuple[str, int]],
    *,
    generation: int,
    step: int,
    name: str = "replica",
    token: str = "",
    into: Place = lambda _number, _dtype, _shape: None,
    deadline_s: float,
    stall_s: float = STALL_S,
    check: Callable[[], None] = lambda: None,
    faults: Injector | None = None,
) -> Flat:
    """
    The state of a generation and step, from the first donor that gives it whole.

    Args:
        into: Where a tensor of this number, type and shape may be received; None: into a new one in host memory.
        deadline_s: For all of it.
        stall_s: A donor that sends nothing for so long is given up.
        check: Called often; what it raises ends the wait for all donors.

    Raises:
        TransferError: no donor gave it. What was received into may be torn.
    """
    end = time.monotonic() + deadline_s
    request = Request(generation=generation, step=step, name=name)
    problems = []
    for host, port in donors:
        left = end - time.monotonic()
        if left <= 0:
            problems.append(f"no time is left of {deadline_s:g} s")
            break
        try:
            with socket.create_connection((host, port), timeout=min(CONNECT_S, left)) as connection:
                line = Line(connection, deadline_s=end - time.monotonic(), stall_s=stall_s, check=check)
                return _Receiver(line, into, faults or Injector()).receive(request, token=token, port=port)
        except (OSError, ValueError, TypeError) as error:
            problems.append(f"{host}:{port}: {error}")
    raise TransferError(f"no donor gave the state of step {step}: {'; '.join(problems) or 'there is none'}")


@dataclass
class _Staged:
    end: int
    """Bytes of the whole state up to its end."""
    host: Tensor
    place: Tensor


class _Receiver:
    def __init__(self, line: Line, into: Place, faults: Injector) -> None:
        self._line = line
        self._into = into
        self._faults = faults
        self._skeleton = bytearray()
        self._tensors: list[Tensor] = []
        self._staged: deque[_Staged] = deque()

    def receive(self, request: Request, *, token: str, port: int) -> Flat:
        line = self._line
        nonce = line.read(NONCE_BYTES)
        request = replace(request, challenge=secrets.token_hex(NONCE_BYTES))
        line.send_object(vars(replace(request, proof=request.prove(token=token, nonce=nonce))))
        header = Header(**line.read_object())
        if header.refusal:
            raise WireError(header.refusal)
        proof = header.prove(token=token, challenge=request.challenge, port=port)
        if token and not hmac.compare_digest(header.proof, proof):
            raise WireError("the other side does not have the token of this run")
        if (header.generation, header.step) != (request.generation, request.step):
            raise WireError(f"offered is generation {header.generation}, step {header.step}")
        checksums = self._receive(header)
        size, digest = CHUNK.unpack(line.read(CHUNK.size))
        if size != 0 or digest != digest_of(checksums, generation=request.generation, step=request.step):
            raise WireError("the digest of the whole is not the donor's")
        return Flat(skeleton=read_skeleton(bytes(self._skeleton)), tensors=self._tensors)

    def _receive(self, header: Header) -> list[int]:
        checksums: list[int] = []
        done = 0
        for chunk in chunks_of(self._memory(header)):
            checksums.append(self._announced(chunk))
            self._line.read_into(chunk)
            self._faults.point("copy-in")
            _compare(checksum_of(chunk), checksums[-1], len(checksums))
            done += sum(map(len, chunk))
            self._unstage(done)
        return checksums

    def _announced(self, chunk: Sequence[memoryview]) -> int:
        size, checksum = CHUNK.unpack(self._line.read(CHUNK.size))
        due = sum(map(len, chunk))
        if size != due:
            raise WireError(f"a chunk has {size} bytes, {due} were due")
        return int(checksum)

    def _memory(self, header: Header) -> Iterator[memoryview]:
        self._skeleton = bytearray(header.skeleton_bytes)
        yield memoryview(self._skeleton)
        end = header.skeleton_bytes
        for number, (kind, dimensions) in enumerate(header.tensors):
            dtype, shape = getattr(torch, kind, None), tuple(dimensions)
            if not isinstance(dtype, torch.dtype):
                raise WireError(f"there is no type {kind} of tensors")
            end += math.prod(shape) * dtype.itemsize
            place = self._into(number, dtype, shape)
            if place is None or is_direct(place):
                host = torch.empty(shape, dtype=dtype) if place is None else place
            else:
                host = torch.empty(shape, dtype=dtype)
                self._staged.append(_Staged(end=end, host=host, place=place))
            self._tensors.append(host if place is None else place)
            yield tensor_bytes(host)

    def _unstage(self, done: int) -> None:
        while self._staged and self._staged[0].end <= done:
            staged = self._staged.popleft()
            staged.place.copy_(staged.host)


def _compare(found: int, checksum: int, number: int) -> None:
    if found != checksum:
        raise WireError(f"chunk {number} has the checksum {found:08x}, the donor's is {checksum:08x}")
