"""
How fast state goes from rank to rank, as a part of what the same bytes take as a plain copy over loopback.

    python benchmarks/transfer.py [--mib 512] [--rounds 5]

All are measured in turn, between two processes, into memory that is there already. The transfer checks each chunk and
the whole against the donor's numbers; the plain copy checks nothing. Prints one line per round and the ratio of the
medians; less than 0.70 would be too little.
"""

import argparse
import multiprocessing
import os
import socket
import statistics
import sys
import time
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT / "containers" / "training"), str(ROOT / "containers" / "common")]

import torch  # noqa: E402

from holdfast_runtime.transfer import Flat, Server, flatten, receive  # noqa: E402
from holdfast_runtime.transfer import Offer as Offered  # noqa: E402

LAYERS = 24
"""The state is cut as that of a transformer is: a few large tensors per layer, and many small ones."""


def state_of(mib: int) -> Flat:
    """A state of so many MiB, in the shapes of parameters and of Adam's two moments."""
    generator = torch.Generator().manual_seed(1)
    numbers = mib * (1 << 20) // 4 // (3 * LAYERS)
    tree = {
        f"{layer}.{part}": {
            "weight": torch.rand(numbers, generator=generator),
            "bias": torch.rand(384, generator=generator),
            "step": torch.tensor(float(layer)),
        }
        for layer in range(LAYERS)
        for part in ("parameter", "first", "second")
    }
    return flatten(tree)


def _plain_donor(ready: Connection, mib: int) -> None:
    data = memoryview(bytes(mib << 20))
    with socket.create_server(("127.0.0.1", 0)) as server:
        ready.send(server.getsockname()[1])
        while True:
            connection, _ = server.accept()
            with connection:
                connection.sendall(data)


def _donor(ready: Connection, mib: int) -> None:
    torch.set_num_threads(1)
    flat = state_of(mib)
    server = Server(host="127.0.0.1", deadline_s=60.0)
    server.offer("replica", Offered(generation=1, step=2, state=lambda: flat))
    ready.send(server.port)
    ready.recv()


def _plain(port: int, buffer: memoryview) -> None:
    with socket.create_connection(("127.0.0.1", port)) as connection:
        done = 0
        while done < len(buffer):
            done += connection.recv_into(buffer[done:])


def _checked(port: int, places: list[torch.Tensor]) -> None:
    receive(
        [("127.0.0.1", port)],
        generation=1,
        step=2,
        into=lambda number, _dtype, _shape: places[number],
        deadline_s=60.0,
    )


def _seconds(work: Callable[[], None]) -> float:
    begin = time.perf_counter()
    work()
    return time.perf_counter() - begin


def main() -> int:
    parser = argparse.ArgumentParser(description="Transfer of state beside a plain copy.")
    parser.add_argument("--mib", type=int, default=512)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    torch.set_num_threads(1)
    context = multiprocessing.get_context("spawn")
    ports, donors = [], []
    for target in (_plain_donor, _donor):
        here, there = context.Pipe()
        donor = context.Process(target=target, args=(there, options.mib), daemon=True)
        donor.start()
        donors.append((donor, here))
        ports.append(here.recv())
    places = [tensor.clone() for tensor in state_of(options.mib).tensors]
    size = sum(tensor.numel() * tensor.element_size() for tensor in places)
    buffer = memoryview(bytearray(options.mib << 20))
    _plain(ports[0], buffer)
    _checked(ports[1], places)
    plain, sent = [], []
    for _ in range(options.rounds):
        plain.append(len(buffer) / _seconds(lambda: _plain(ports[0], buffer)) / 1e9)
        sent.append(size / _seconds(lambda: _checked(ports[1], places)) / 1e9)
        print(f"plain {plain[-1]:.2f} GB/s; checked {sent[-1]:.2f} GB/s")
    ratio = statistics.median(sent) / statistics.median(plain)
    about = f"{len(places)} tensors, {size / 2**20:.0f} MiB, {os.cpu_count()} cores"
    print(f"{about}, of a plain copy over loopback: {ratio:.2f} (limit: 0.70 or more)")
    for donor, _ in donors:
        donor.kill()
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
