"""A watched HTTP server on somebody else's socket."""

import http.client
import http.server
import socket
from collections.abc import Iterator

import pytest

from holdfast.localcloud.supervision import HttpService


class Hello(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
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
    service = HttpService(name="hello", listener=listener, handler=Hello)
    service.start()
    port = listener.getsockname()[1]
    try:
        held = [http.client.HTTPConnection("127.0.0.1", port, timeout=5) for _ in range(2)]
        for one in held:
            one.request("GET", "/")
            assert one.getresponse().read() == b"hello"

        with pytest.raises((http.client.RemoteDisconnected, ConnectionResetError)):
            ask(port)

        for one in held:
            one.close()
        for _ in range(50):
            try:
                assert ask(port) == b"hello"
                break
            except (http.client.RemoteDisconnected, ConnectionResetError):
                continue
        else:
            pytest.fail("the room of closed connections was not given back")
    finally:
        service.stop()


def test_after_stop_nobody_listens(service: HttpService, listener: socket.socket) -> None:
    port = listener.getsockname()[1]
    service.stop()
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port), timeout=5)


def test_stop_returns_when_it_was_never_started(listener: socket.socket) -> None:
    HttpService(name="hello", listener=listener, handler=Hello).stop()
    assert listener.fileno() == -1
