"""Carries TCP connections from the nodes' network to a service on the machine's loopback."""

import contextlib
import select
import socket
import threading

_CHUNK_BYTES = 1 << 16
_CONNECT_TIMEOUT_S = 5.0


class Forwarder:
    """Serves ``listener`` in background threads until ``close``. While the target is down, connections end at once."""

    def __init__(self, listener: socket.socket, target: tuple[str, int]) -> None:
        self._listener = listener
        self._target = target
        self._guard = threading.Lock()
        self._open: set[socket.socket] = set()
        self._closed = False
        self._thread = threading.Thread(target=self._accept, name=f"forward-{target[1]}", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop listening and end every connection."""
        with self._guard:
            self._closed = True
            ends = [self._listener, *self._open]
        for end in ends:
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)  # wakes the thread that blocks on it; close alone would not
        self._thread.join()
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                if self._closed:
                    return
                continue
            threading.Thread(target=self._carry, args=(client,), daemon=True).start()

    def _carry(self, client: socket.socket) -> None:
        with client, contextlib.suppress(OSError):
            server = socket.create_connection(self._target, timeout=_CONNECT_TIMEOUT_S)
            with server:
                server.settimeout(None)
                self._track(client, server)
                try:
                    _copy_both_ways(client, server)
                finally:
                    with self._guard:
                        self._open -= {client, server}

    def _track(self, *ends: socket.socket) -> None:
        with self._guard:
            if self._closed:
                raise ConnectionAbortedError
            self._open |= set(ends)


def forward(listener: socket.socket, target: tuple[str, int]) -> Forwarder:
    """Start carrying connections; ``target`` is reached from the caller's own network."""
    return Forwarder(listener, target)


def _copy_both_ways(one: socket.socket, other: socket.socket) -> None:
    """Until both sides have said they are done; the end of one direction is passed on at once."""
    towards = {one: other, other: one}
    while towards:
        for source in _readable(list(towards)):
            data = source.recv(_CHUNK_BYTES)
            if data:
                towards[source].sendall(data)
            else:
                towards.pop(source).shutdown(socket.SHUT_WR)


def _readable(ends: list[socket.socket]) -> list[socket.socket]:
    """poll, not select, which refuses descriptors from 1024 on: a control plane of many nodes has them."""
    poller, by_fd = select.poll(), {end.fileno(): end for end in ends}
    for fd in by_fd:
        poller.register(fd, select.POLLIN)
    return [by_fd[fd] for fd, _ in poller.poll()]
