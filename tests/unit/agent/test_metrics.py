"""The agent's numbers: as text, in a remote write, and who gets them."""

import contextlib
import http.client
import socket
import struct
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from agent_parts import instant
from hypothesis import given
from hypothesis import strategies as st

from holdfast_agent.configuration import load
from holdfast_agent.machine import Machine
from holdfast_agent.metrics import MetricsServer, compressed, exposition, read_token, write_request
from holdfast_agent.service import measuring
from holdfast_agent.signals import Metric

TEMPERATURE = ("DCGM_FI_DEV_GPU_TEMP", (("gpu", "3"),))


def test_numbers_of_one_name_stand_together_below_what_it_means() -> None:
    text = exposition({("node_load1", ()): 0.5, TEMPERATURE: 91.0, ("DCGM_FI_DEV_GPU_TEMP", (("gpu", "1"),)): 40.0})
    assert text.splitlines() == [
        "# HELP DCGM_FI_DEV_GPU_TEMP Temperature of a GPU in degrees Celsius.",
        "# TYPE DCGM_FI_DEV_GPU_TEMP gauge",
        'DCGM_FI_DEV_GPU_TEMP{gpu="1"} 40.0',
        'DCGM_FI_DEV_GPU_TEMP{gpu="3"} 91.0',
        "# HELP node_load1 Load of the last minute.",
        "# TYPE node_load1 gauge",
        "node_load1 0.5",
    ]


def test_what_a_label_says_cannot_end_it() -> None:
    text = exposition({("a", (("b", 'x"} 1\nc{d="\\'),)): 1.0})
    assert text.splitlines()[1:] == ['a{b="x\\"} 1\\nc{d=\\"\\\\"} 1.0']


def unpacked(block: bytes) -> bytes:
    """A snappy block of literals, by its format description."""
    size = shift = at = 0
    while True:
        byte = block[at]
        size |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if not byte & 0x80:
            break
    found = b""
    while at < len(block):
        assert block[at] == 61 << 2
        (length,) = struct.unpack_from("<H", block, at + 1)
        found += block[at + 3 : at + 3 + length + 1]
        at += 3 + length + 1
    assert len(found) == size
    return found


@given(st.binary(max_size=200_000))
def test_a_block_holds_what_was_put_into_it(data: bytes) -> None:
    assert unpacked(compressed(data)) == data


def test_labels_of_the_node_are_given_to_each_number_in_order_and_empty_ones_are_left_out() -> None:
    message = write_request({TEMPERATURE: 1.0}, time_ms=5, labels=(("instance", "ip-10-1-0-12"), ("cluster", "")))
    names = [name for name in (b"__name__", b"gpu", b"instance", b"cluster") if name in message]
    assert names == [b"__name__", b"gpu", b"instance"]
    assert [message.index(name) for name in names] == sorted(message.index(name) for name in names)


@pytest.fixture
def server() -> Iterator[MetricsServer]:
    made = MetricsServer(address="127.0.0.1", port=0, token="secret", numbers=lambda: {("node_load1", ()): 0.5})
    made.start()
    yield made
    made.stop()


def ask(server: MetricsServer, *, token: str | None, path: str = "/metrics", method: str = "GET") -> tuple[int, str]:
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=5)
    try:
        headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        connection.request(method, path, headers=headers)
        answer = connection.getresponse()
        return answer.status, answer.read().decode()
    finally:
        connection.close()


def test_a_scraper_with_the_token_gets_the_numbers(server: MetricsServer) -> None:
    status, text = ask(server, token="secret")
    assert status == 200
    assert "node_load1 0.5" in text


@pytest.mark.parametrize("token", [None, "", "wrong", "secret2"])
def test_whoever_has_no_token_is_told_nothing(server: MetricsServer, token: str | None) -> None:
    assert ask(server, token=token) == (401, "")
    assert ask(server, token=token, path="/elsewhere") == (401, "")


def scraped(server: MetricsServer, *, source: str = "127.0.0.1") -> bytes:
    """The answer to a scraper at an address of its own, as another node is."""
    with socket.create_connection(("127.0.0.1", server.port), timeout=5, source_address=(source, 0)) as line:
        line.sendall(b"GET /metrics HTTP/1.1\r\nAuthorization: Bearer secret\r\n\r\n")
        return b"".join(iter(lambda: line.recv(65536), b""))


def hold(server: MetricsServer, count: int, said: bytes) -> list[socket.socket]:
    """Connections from one address that say so much and no more, and read nothing."""
    lines = []
    for _ in range(count):
        line = socket.create_connection(("127.0.0.1", server.port), timeout=2)
        line.setblocking(False)
        with contextlib.suppress(OSError):
            line.sendall(said)
        lines.append(line)
    return lines


@pytest.mark.parametrize("said", [b"", b"GET /metrics HTTP/1.1\r\n", b"x" * 7000])
def test_one_caller_with_many_connections_takes_the_numbers_from_no_other(server: MetricsServer, said: bytes) -> None:
    held = hold(server, 150, said)
    began = time.monotonic()

    assert all(b"node_load1 0.5" in scraped(server, source="127.0.0.9") for _ in range(5))
    assert b"node_load1 0.5" in scraped(server), "not even from an agent's own address"
    assert time.monotonic() - began < 2.0
    for line in held:
        line.close()


def test_a_request_that_comes_a_byte_at_a_time_is_ended_and_holds_up_nobody(server: MetricsServer) -> None:
    line = socket.create_connection(("127.0.0.1", server.port), timeout=10)
    began, ended = time.monotonic(), threading.Event()

    def drip() -> None:
        with contextlib.suppress(OSError):
            while not ended.wait(0.1):
                line.sendall(b"G")

    dripping = threading.Thread(target=drip)
    dripping.start()
    try:
        assert b"node_load1 0.5" in scraped(server)
        assert time.monotonic() - began < 2.0
        with contextlib.suppress(ConnectionResetError):
            assert line.recv(10) == b""
        assert 3.0 < time.monotonic() - began < 9.0
    finally:
        ended.set()
        dripping.join()
        line.close()


def test_whoever_never_reads_the_answer_is_left_and_holds_up_nobody() -> None:
    numbers: dict[Metric, float] = {("node_load1", (("n", "x" * 1000 + str(number)),)): 0.5 for number in range(8_000)}
    made = MetricsServer(address="127.0.0.1", port=0, token="secret", numbers=lambda: numbers)
    made.start()
    asking = socket.socket()
    asking.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    asking.connect(("127.0.0.1", made.port))
    asking.sendall(b"GET /metrics HTTP/1.1\r\nAuthorization: Bearer secret\r\n\r\n")
    began = time.monotonic()

    assert len(scraped(made)) > 8_000_000
    assert time.monotonic() - began < 4.0
    asking.close()
    made.stop()


def test_there_is_one_path(server: MetricsServer) -> None:
    assert ask(server, token="secret", path="/elsewhere")[0] == 404
    assert ask(server, token="secret", method="POST")[0] == 404


def test_a_port_without_a_token_is_refused() -> None:
    with pytest.raises(ValueError, match="got an empty token"):
        MetricsServer(address="127.0.0.1", port=0, token="", numbers=dict)


def test_a_token_is_made_once_and_for_its_owner_alone(tmp_path: Path) -> None:
    first = read_token(tmp_path / "made" / "token")
    assert len(first) >= 32
    assert read_token(tmp_path / "made" / "token") == first
    assert (tmp_path / "made" / "token").stat().st_mode & 0o777 == 0o600


def test_the_machine_is_measured_without_what_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "loadavg").write_text("0.50 0.40 0.30 1/200 4711\n")
    (tmp_path / "meminfo").write_text("MemTotal:       1024 kB\nMemAvailable:    512 kB\nOther: 1 kB\n")
    (tmp_path / "stat").write_text("cpu  100 0 50 1000 0 0 0 0 0 0\ncpu0 1 1\nbtime 1700000000\n")
    detector = Machine(proc=tmp_path)

    assert detector.look(instant(1.0)) == ()
    found = detector.numbers
    assert found["node_load15", ()] == 0.3
    assert found["node_memory_MemTotal_bytes", ()] == 1 << 20
    assert found["node_cpu_seconds_total", (("mode", "system"),)] == 0.5
    assert found["node_boot_time_seconds", ()] == 1.7e9
    assert ("node_vmstat_oom_kill", ()) not in found
    assert detector.parts["loadavg"] == ""
    assert "No such file" in (detector.parts["vmstat"] or "")
    (tmp_path / "stat").write_text("cpu  one\n")
    detector.look(instant(11.0))
    assert ("node_boot_time_seconds", ()) not in detector.numbers
    assert "could not convert" in (detector.parts["stat"] or "")


def test_the_machine_itself_is_measured() -> None:
    detector = Machine()
    detector.look(instant(1.0))
    assert detector.numbers["node_memory_MemAvailable_bytes", ()] > 0
    assert {why for why in detector.parts.values() if why} == set()


def test_a_port_that_is_taken_is_said_and_the_node_is_watched_all_the_same(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        told = {"metrics.port": port, "metrics.token_path": tmp_path / "token"}
        configuration = load(file=None, assignments=[f"{key}={value}" for key, value in told.items()], environment={})
        (stands_in,) = measuring(configuration, dict)
        assert f"port {port}" in (stands_in.state or "")
    assert f"metrics: cannot serve at port {port}: " in capsys.readouterr().err
