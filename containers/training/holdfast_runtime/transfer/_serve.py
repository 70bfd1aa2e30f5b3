"""The donor's side: a thread that answers requests for the state that this process holds, while it holds still."""

import contextlib
import socket
import threading
import time
import zlib
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from holdfast_runtime.faults import Injector
from holdfast_runtime.transfer._state import Flat, tensor_bytes
from holdfast_runtime.transfer._wire import (
    CHUNK,
    CHUNK_BYTES,
    Header,
    Request,
    WireError,
    digest_of,
    read_line,
    send_object,
)

SLOW_S = 0.2
"""A slow link of fault injection: pause per chunk."""


@dataclass(frozen=True)
class Offer:
    """A state that may be asked for. It must not change until it is withdrawn."""

    epoch: int
    step: int
    state: Callable[[], Flat]


class Server:
    """Listens from the start of the process to its end."""

    def __init__(self, *, host: str = "", faults: Injector | None = None, deadline_s: float) -> None:
        self._faults = faults or Injector()
        self._deadline_s = deadline_s
        self._offers: dict[str, Offer] = {}
        self._lock = threading.Lock()
        self._listener = socket.create_server((host, 0))
        self.port: int = self._listener.getsockname()[1]
        self._thread = threading.Thread(target=self._listen, name="holdfast-transfer", daemon=True)
        self._thread.start()

    def offer(self, name: str, offer: Offer) -> None:
        """From now on, this may be asked for under a name."""
        with self._lock:
            self._offers[name] = offer

    def withdraw(self, name: str) -> None:
        """From now on, it may not."""
        with self._lock:
            self._offers.pop(name, None)

    def close(self) -> None:
        """Stop listening."""
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _listen(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._answer, args=(connection,), daemon=True).start()

    def _answer(self, connection: socket.socket) -> None:
        with connection, contextlib.suppress(OSError, WireError, TypeError):
            connection.settimeout(self._deadline_s)
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            request = Request(**read_line(connection))  # type: ignore[arg-type]
            with self._lock:
                offer = self._offers.get(request.name)
            if offer is None or (offer.epoch, offer.step) != (request.epoch, request.step):
                has = f"that of epoch {offer.epoch}, step {offer.step}" if offer else "none"
                asked = f"{request.name} of epoch {request.epoch}, step {request.step}"
                send_object(connection, Header(refusal=f"asked for {asked}; there is {has}"))
                return
            self._send(connection, offer)

    def _send(self, connection: socket.socket, offer: Offer) -> None:
        flat = offer.state()
        skeleton = flat.skeleton_bytes()
        shapes = tuple((str(tensor.dtype).removeprefix("torch."), tuple(tensor.shape)) for tensor in flat.tensors)
        header = Header(epoch=offer.epoch, step=offer.step, skeleton_bytes=len(skeleton), tensors=shapes)
        send_object(connection, header)
        checksums: list[int] = []
        with ThreadPoolExecutor(1) as ahead:
            chunks = [memoryview(skeleton), *chunks_of(flat)]
            pending = ahead.submit(zlib.crc32, chunks[0])
            for number, chunk in enumerate(chunks):
                checksum = pending.result()
                if number + 1 < len(chunks):
                    pending = ahead.submit(zlib.crc32, chunks[number + 1])
                checksums.append(checksum)
                self._send_chunk(connection, chunk, checksum)
        connection.sendall(CHUNK.pack(0, digest_of(checksums, epoch=offer.epoch, step=offer.step)))
        connection.recv(1)  # the receiver closes when it has checked all

    def _send_chunk(self, connection: socket.socket, chunk: memoryview, checksum: int) -> None:
        fault = self._faults.link("copy-out")
        if fault == "cut":
            connection.shutdown(socket.SHUT_RDWR)
        elif fault == "slow":
            time.sleep(SLOW_S)
        elif fault == "corrupt":
            damaged = bytearray(chunk)
            damaged[len(damaged) // 2] ^= 1
            chunk = memoryview(damaged)
        connection.sendall(CHUNK.pack(len(chunk), checksum))
        connection.sendall(chunk)


def chunks_of(flat: Flat) -> Iterator[memoryview]:
    """The bytes of all tensors, in pieces that the receiver cuts in the same way."""
    for tensor in flat.tensors:
        data = tensor_bytes(tensor)
        for start in range(0, len(data), CHUNK_BYTES):
            yield data[start : start + CHUNK_BYTES]
