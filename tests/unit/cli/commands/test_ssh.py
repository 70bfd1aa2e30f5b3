import socket
import threading
from typing import Any

import pytest
from typer.testing import CliRunner

from holdfast import cli
from holdfast.cli.node_access import forwarded
from holdfast.cli.terminal import CommandError


@pytest.mark.parametrize("text", ["", "0", ":80", "80:", "70000", "1:70000", "a:b", "1:2:3", "-1:80", "\u0663", "80:0"])
def test_a_forward_that_names_no_port_is_refused_before_a_cluster_is_asked(text: str) -> None:
    done = CliRunner().invoke(cli.app, ["ssh", "i-4", "--forward", text])
    assert f"got --forward {text!r}; allowed: PORT or LOCAL:PORT" in str(done.exception)


@pytest.mark.parametrize(
    "words", [["--stdio", "22", "--forward", "80"], ["--stdio", "22", "--", "id"], ["--forward", "80", "--", "id"]]
)
def test_a_command_a_connection_and_a_port_are_asked_for_one_at_a_time(words: list[str]) -> None:
    done = CliRunner().invoke(cli.app, ["ssh", "i-4", *words])
    assert "allowed: one of them" in str(done.exception)


def test_each_connection_is_relayed_by_itself_and_a_failure_is_a_problem_of_its_own() -> None:
    failing = threading.Event()

    def relay(ends: int) -> None:
        if failing.is_set():
            raise CommandError("node head does not answer: port 7: connection refused")
        with socket.socket(fileno=socket.dup(ends)) as own:
            while data := own.recv(100):
                own.sendall(data.upper())

    with forwarded(0, relay) as port:
        lines: list[Any] = [socket.create_connection(("127.0.0.1", port.port), timeout=10) for _ in range(3)]
        for line in lines:
            line.sendall(b"word")
        assert [line.recv(100) for line in lines] == [b"WORD"] * 3
        failing.set()
        with socket.create_connection(("127.0.0.1", port.port), timeout=10) as refused:
            assert refused.recv(100) == b""
        assert next(port.problems()) == "node head does not answer: port 7: connection refused"
        for line in lines:
            line.close()


def test_a_taken_port_is_named() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        number = taken.getsockname()[1]
        with pytest.raises(CommandError, match=f"port {number} of this machine"), forwarded(number, lambda _: None):
            pass
