"""A network namespace in which nothing exists but chosen ports of the machine's loopback.

Clients run in it unchanged: they find the embedded AWS and the API server at the addresses that they know, and what
they send to anybody else (the telemetry of `hyp`) finds no route. Needs root.
"""

import ctypes
import os
import select
import socket
import subprocess
import sys
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress

CLONE_NEWNET = 0x40000000


@contextmanager
def closed_network(ports: Iterable[int]) -> Iterator[list[str]]:
    """
    The words to put before a command so that it runs in such a network; the network is gone at the end.

    Args:
        ports: TCP ports of 127.0.0.1 that are there under the same number.
    """
    holder = subprocess.Popen(
        [sys.executable, "-I", __file__, *map(str, sorted(set(ports)))],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert holder.stdout is not None
        path = holder.stdout.readline().strip()
        assert path, "the closed network was not made"
        yield ["nsenter", f"--net={path}"]
    finally:
        holder.communicate(timeout=10)  # the end of its input is its end


def main(ports: list[int]) -> None:
    """Make the network, listen in it, connect outside of it, until the standard input ends."""
    libc = ctypes.CDLL(None, use_errno=True)
    with open("/proc/self/ns/net", "rb") as outside:  # noqa: PTH123
        if libc.unshare(CLONE_NEWNET):
            raise OSError(ctypes.get_errno(), "unshare")
        subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
        listeners = [socket.create_server(("127.0.0.1", port)) for port in ports]
        inside = os.open("/proc/self/ns/net", os.O_RDONLY)
        if libc.setns(outside.fileno(), CLONE_NEWNET):  # sockets stay in the namespace that they were made in
            raise OSError(ctypes.get_errno(), "setns")
    for listener in listeners:
        threading.Thread(target=_serve, args=(listener,), daemon=True).start()
    print(f"/proc/{os.getpid()}/fd/{inside}", flush=True)
    sys.stdin.read()


def _serve(listener: socket.socket) -> None:
    port = listener.getsockname()[1]
    while True:
        near, _ = listener.accept()
        threading.Thread(target=_join, args=(near, port), daemon=True).start()


def _join(near: socket.socket, port: int) -> None:
    with near, suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=10) as far:
        far.settimeout(None)
        other = {near: far, far: near}
        while other:
            for source in select.select(list(other), [], [])[0]:
                data = source.recv(1 << 16)
                if data:
                    other_end = far if source is near else near
                    other_end.sendall(data)
                else:
                    target = other.pop(source)
                    target.shutdown(socket.SHUT_WR)


if __name__ == "__main__":
    main([int(port) for port in sys.argv[1:]])
