"""The donor's side: a thread that answers requests for the state that this process holds, while it holds still."""

import contextlib
import hmac
import secrets
import socket
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from holdfast_runtime.checksums import checksum_of
from holdfast_runtime.control import listen
from holdfast_runtime.faults import Injector
from holdfast_runtime.transfer.state import Flat, tensor_bytes
from holdfast_runtime.transfer.wire import (
    CHUNK,
    NONCE_BYTES,
    Header,
    Line,
    Request,
    WireError,
    chunks_of,
    digest_of,
)

PATIENCE_S = 10.0
"""How long a request may wait for the state to be on offer; less than a receiver waits for a sign of life."""
SLOW_S = 0.2
"""A slow link of fault injection: pause per chunk."""


@dataclass(frozen=True)
class Offer:
    """A state that may be asked for. It must not change until it is withdrawn."""

    generation: int
    step: int
    state: Callable[[], Flat]


class Server:
    """
    Listens from the start of the process to its end.

    Args:
        host: Where it listens. Default: on all addresses.
        token: The job's secret; who does not know it gets nothing.
        deadline_s: For one receiver to take all of it.
        patience_s: How long a request may wait for the state: a receiver may be in the next generation first.
            Default: 10
    """

    def __init__(
        self,
        *,
        host: str = "",
        token: str = "",
        faults: Injector | None = None,
        deadline_s: float,
        patience_s: float = PATIENCE_S,
    ) -> None:
        self._faults = faults or Injector()
        self._token = token
        self._deadline_s = deadline_s
        self._offers: dict[str, Offer] = {}
        self._patience_s = patience_s
        self._lock = threading.Condition()
        self._listener = listen(host)
        self.port: int = self._listener.getsockname()[1]
        self._thread = threading.Thread(target=self._accept, name="holdfast-transfer", daemon=True)
        self._thread.start()

    def offer(self, name: str, offer: Offer) -> None:
        with self._lock:
            self._offers[name] = offer
            self._lock.notify_all()

    def withdraw(self, name: str) -> None:
        with self._lock:
            self._offers.pop(name, None)

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._thread.join()
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._answer, args=(connection,), daemon=True).start()

    def _answer(self, connection: socket.socket) -> None:
        with connection, contextlib.suppress(OSError, WireError, TypeError, ValueError):  # strangers write no log
            line = Line(connection, deadline_s=self._deadline_s)
            nonce = secrets.token_bytes(NONCE_BYTES)
            line.send([nonce])
            request = Request(**line.read_object())
            if not hmac.compare_digest(request.proof, request.prove(token=self._token, nonce=nonce)):
                line.send_object(vars(Header(refusal="the proof of the job's token is wrong")))
                return
            offer = self._offered(request)
            if offer is None or (offer.generation, offer.step) != (request.generation, request.step):
                has = f"that of generation {offer.generation}, step {offer.step}" if offer else "none"
                asked = f"{request.name} of generation {request.generation}, step {request.step}"
                line.send_object(vars(Header(refusal=f"asked for {asked}; there is {has}")))
                return
            line.check = lambda: self._check(request.name, offer)
            self._send(line, offer, request)

    def _offered(self, request: Request) -> Offer | None:
        def is_there() -> bool:
            offer = self._offers.get(request.name)
            return offer is not None and offer.generation >= request.generation

        with self._lock:
            self._lock.wait_for(is_there, self._patience_s)
            return self._offers.get(request.name)

    def _check(self, name: str, offer: Offer) -> None:
        with self._lock:
            if self._offers.get(name) is not offer:
                raise WireError("the state is not on offer any more")

    def _send(self, line: Line, offer: Offer, request: Request) -> None:
        flat = offer.state()
        skeleton = flat.skeleton_bytes
        shapes = tuple((str(tensor.dtype).removeprefix("torch."), tuple(tensor.shape)) for tensor in flat.tensors)
        header = Header(generation=offer.generation, step=offer.step, skeleton_bytes=len(skeleton), tensors=shapes)
        proof = header.prove(token=self._token, challenge=request.challenge, port=self.port)
        line.send_object(vars(replace(header, proof=proof)))
        checksums: list[int] = []
        for chunk in chunks_of(_memory(skeleton, flat)):
            checksums.append(checksum_of(chunk))
            self._send_chunk(line, chunk, checksums[-1])
        # What was sent before this is of one step only if the offer still holds now.
        line.check()
        line.send([CHUNK.pack(0, digest_of(checksums, generation=offer.generation, step=offer.step))])
        line.read_end()  # the receiver closes when it has checked all

    def _send_chunk(self, line: Line, chunk: list[memoryview], checksum: int) -> None:
        fault = self._faults.link("copy-out")
        if fault == "cut":
            line.cut()
        elif fault == "slow":
            time.sleep(SLOW_S)
        elif fault == "corrupt":
            damaged = bytearray(b"".join(chunk))
            damaged[len(damaged) // 2] ^= 1
            chunk = [memoryview(damaged)]
        line.send([CHUNK.pack(sum(map(len, chunk)), checksum), *chunk])


def _memory(skeleton: bytes, flat: Flat) -> Iterator[memoryview]:
    yield memoryview(skeleton)
    for tensor in flat.tensors:
        yield tensor_bytes(tensor)
