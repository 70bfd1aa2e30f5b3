"""A watched HTTP server on somebody else's socket."""

import contextlib
import http.client
import socket
import threading
import time
from collections.abc import Iterator

import pytest
from waiting import eventually

from holdfast.localcloud.supervision import HttpService, RequestHandler


class Hello(RequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:  # noqa: N802  the library's name
        self.send_response(200)
        self.send_header("Content-Length", "5")
        self.end_headers()
        self.wfile.write(b"hello")

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  the library's name
        pass


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as made:
        yield made


@pytest.fixture
def service(listener: socket.socket) -> Iterator[HttpService]:
    made = HttpService(name="hello", listener=listener, handler=Hello)
    made.start()
    yield made
    made.stop()


def ask(port: int) -> bytes:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
    try:
        connection.request("GET", "/")
        return connection.getresponse().read()
    finally:
        connection.close()


def test_it_answers_on_the_socket_that_it_was_given(service: HttpService, listener: socket.socket) -> None:
    assert ask(listener.getsockname()[1]) == b"hello"
    assert service.worker.is_alive


def test_connections_beyond_the_bound_are_closed_and_later_ones_answered(
    monkeypatch: pytest.MonkeyPatch, listener: socket.socket
) -> None:
    monkeypatch.setattr("holdfast.localcloud.supervision.http_service.MOST_CONNECTIONS", 2)
    goes_on = threading.Event()

    class Slow(Hello):
        def do_GET(self) -> None:  # noqa: N802  the library's name
            goes_on.wait(20)
            super().do_GET()

    service = HttpService(name="hello", listener=listener, handler=Slow)
    service.start()
    port = listener.getsockname()[1]
    try:
        held = [http.client.HTTPConnection("127.0.0.1", port, timeout=5) for _ in range(2)]
        for one in held:
            one.request("GET", "/")
        time.sleep(0.2)  # both are being answered: neither makes room

        with pytest.raises((http.client.RemoteDisconnected, ConnectionResetError)):
            ask(port)

        goes_on.set()
        assert [one.getresponse().read() for one in held] == [b"hello", b"hello"]
        for one in held:
            one.close()
        eventually(lambda: _answered(port), "room of closed connections")
    finally:
        goes_on.set()
        service.stop()


def _answered(port: int, *, source: str = "127.0.0.1") -> bool:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5, source_address=(source, 0))
    try:
        connection.request("GET", "/")
        return connection.getresponse().read() == b"hello"
    except (http.client.RemoteDisconnected, ConnectionResetError):
        return False
    finally:
        connection.close()


def _is_closed(line: socket.socket) -> bool:
    """Whether a connection that gets one more byte is ended."""
    try:
        line.sendall(b"G")
        return line.recv(1) == b""
    except TimeoutError:
        return False
    except OSError:
        return True


@pytest.mark.parametrize("said", [b"", b"GET / HTTP/1.1\r\nHost: x\r\n"])
def test_connections_that_one_caller_holds_keep_no_other_from_an_answer(
    service: HttpService, listener: socket.socket, said: bytes
) -> None:
    port = listener.getsockname()[1]
    held = []
    for _ in range(200):
        held.append(socket.create_connection(("127.0.0.1", port), timeout=5))
        with contextlib.suppress(OSError):
            held[-1].sendall(said)
    began = time.monotonic()

    assert all(_answered(port, source=f"127.0.0.{number}") for number in range(2, 12))
    assert _answered(port), "nor itself"
    assert time.monotonic() - began < 5.0
    assert sum(thread.name.startswith("Thread-") for thread in threading.enumerate()) < 80
    for one in held:
        one.close()


def test_a_request_has_one_deadline_however_it_comes(
    listener: socket.socket,
) -> None:
    service = HttpService(name="hello", listener=listener, handler=Hello, request_s=1.0)
    service.start()
    line = socket.create_connection(("127.0.0.1", listener.getsockname()[1]), timeout=0.2)
    began, ended = time.monotonic(), False
    while not ended and time.monotonic() - began < 10.0:
        ended = _is_closed(line)
    line.close()
    service.stop()

    assert ended
    assert time.monotonic() - began < 5.0


def test_after_stop_nobody_listens(service: HttpService, listener: socket.socket) -> None:
    port = listener.getsockname()[1]
    service.stop()
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port), timeout=5)


def test_stop_returns_when_it_was_never_started(listener: socket.socket) -> None:
    HttpService(name="hello", listener=listener, handler=Hello).stop()
    assert listener.fileno() == -1
