"""What passes bytes on tells each side of the end of the other one."""

import contextlib
import socket
import struct
from collections.abc import Iterator

import pytest

from holdfast.localcloud.forwarding import Forwarder

TIMEOUT_S = 10.0


@pytest.fixture
def far() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(TIMEOUT_S)
        yield listener


@pytest.fixture
def near(far: socket.socket) -> Iterator[socket.socket]:
    """A caller of a forwarder that leads to `far`."""
    listener = socket.create_server(("127.0.0.1", 0))
    forwarder = Forwarder(listener=listener, host="127.0.0.1", port=far.getsockname()[1])
    forwarder.start()
    with socket.create_connection(listener.getsockname(), timeout=TIMEOUT_S) as caller:
        yield caller
    forwarder.stop()


def test_bytes_pass_both_ways_and_an_end_of_one_way_leaves_the_other(far: socket.socket, near: socket.socket) -> None:
    server, _ = far.accept()
    with server:
        server.settimeout(TIMEOUT_S)
        near.sendall(b"question")
        near.shutdown(socket.SHUT_WR)
        assert server.recv(100) == b"question"
        assert server.recv(100) == b""
        server.sendall(b"answer")
    assert near.recv(100) == b"answer"
    assert near.recv(100) == b""


def test_a_caller_hears_of_a_server_that_was_killed(far: socket.socket, near: socket.socket) -> None:
    """The kernel resets connections of a process that had not read everything."""
    server, _ = far.accept()
    server.settimeout(TIMEOUT_S)
    near.sendall(b"question")
    assert server.recv(1) == b"q"
    server.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    server.close()

    try:
        said = near.recv(100)
    except ConnectionResetError:
        said = b""
    assert said == b""


def test_a_server_hears_of_a_caller_that_was_killed(far: socket.socket, near: socket.socket) -> None:
    server, _ = far.accept()
    with server:
        server.settimeout(TIMEOUT_S)
        near.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        near.close()
        assert server.recv(100) == b""


def test_one_caller_takes_the_connections_of_no_other(far: socket.socket) -> None:
    far.listen(200)
    listener = socket.create_server(("127.0.0.1", 0), backlog=200)
    forwarder = Forwarder(listener=listener, host="127.0.0.1", port=far.getsockname()[1])
    forwarder.start()
    held = [socket.create_connection(listener.getsockname(), timeout=TIMEOUT_S) for _ in range(150)]
    served = 0
    far.settimeout(2.0)
    with contextlib.suppress(TimeoutError), contextlib.ExitStack() as stack:
        while True:
            stack.enter_context(far.accept()[0])
            served += 1
    other = socket.create_connection(listener.getsockname(), timeout=TIMEOUT_S, source_address=("127.0.0.9", 0))
    far.settimeout(TIMEOUT_S)
    reached = far.accept()[0]
    for one in (*held, other, reached):
        one.close()
    forwarder.stop()

    assert served == 64
