"""Whatever happened to the owner of a fleet, close leaves nothing of it; and connections carried for its nodes."""

import contextlib
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from holdfast.localcloud.forwarding import Forwarder
from holdfast.localcloud.nodes import Fleet, Node, NodeError, NodeSpec
from holdfast.localcloud.nodes.kernel import proc

pytestmark = [pytest.mark.e2e, pytest.mark.root]

REPOSITORY = Path(__file__).parents[2]
OWNER = """
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from holdfast.localcloud.nodes import Fleet, NodeSpec
fleet = Fleet(home=Path(sys.argv[1]))
fleet.open(network="10.1.0.0/16", gateway="10.1.255.254")
print("open", flush=True)
def boot(n):
    fleet.boot(NodeSpec(instance_id=f"i-{n:017x}", hostname=f"n{n}", address=f"10.1.0.{n}"))
    sys.stdout.write(f"{n}\\n")  # one write: these are threads
    sys.stdout.flush()
with ThreadPoolExecutor(4) as pool:
    list(pool.map(boot, range(1, 40)))
"""


def spec(number: int) -> NodeSpec:
    return NodeSpec(instance_id=f"i-{number:017x}", hostname=f"n{number}", address=f"10.1.0.{number}")


def assert_nothing_left(home: Path) -> None:
    assert [line for line in Path("/proc/mounts").read_text().splitlines() if str(home) in line] == []
    assert proc.users_of_overlays_below(home / "nodes") == []
    assert not home.exists() or list(home.iterdir()) == []


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Path]:
    place = tmp_path / "home"
    yield place
    Fleet(home=place).close()
    assert_nothing_left(place)


def owner_of(home: Path) -> "subprocess.Popen[str]":
    owner = subprocess.Popen(
        [sys.executable, "-c", OWNER, str(home)], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
        cwd=REPOSITORY,
    )  # fmt: skip
    assert owner.stdout is not None
    assert owner.stdout.readline() == "open\n"
    return owner


def unfinished(home: Path) -> list[int]:
    """Boot programs of this home; they hold its lock."""
    lock = str(home / ".nodes.lock")
    found = []
    for pid in proc.pids():
        with contextlib.suppress(OSError):
            found += [pid for fd in Path(f"/proc/{pid}/fd").iterdir() if str(fd.readlink()) == lock]
    return found


@pytest.mark.parametrize("delay_s", [0.0, 0.02, 0.05, 0.1, 0.15, 0.3])
@pytest.mark.parametrize("sign", [signal.SIGKILL, signal.SIGINT])
def test_an_owner_that_ends_while_booting_leaves_nothing_after_close(home: Path, sign: signal.Signals, delay_s: float):
    with owner_of(home) as owner:
        time.sleep(delay_s)
        owner.send_signal(sign)
        if sign == signal.SIGINT:
            time.sleep(0.1)
            owner.kill()
    Fleet(home=home).close()
    assert_nothing_left(home)
    assert unfinished(home) == []


def test_nodes_outlive_the_owner_that_was_killed(home: Path):
    with owner_of(home) as owner:
        assert owner.stdout is not None
        booted = int(owner.stdout.readline())
        owner.kill()
    node = Fleet(home=home).node(f"n{booted}")
    assert node.run(["hostname"], timeout_s=5).stdout == f"n{booted}\n"


def test_close_works_twice_at_once_and_on_a_home_that_never_was(home: Path):
    Fleet(home=home).close()
    fleet = Fleet(home=home)
    fleet.open(network="10.1.0.0/16", gateway="10.1.255.254")
    fleet.open(network="10.1.0.0/16", gateway="10.1.255.254")
    fleet.boot(spec(1))
    with ThreadPoolExecutor(3) as pool:
        list(pool.map(lambda _: Fleet(home=home).close(), range(3)))
    assert_nothing_left(home)


def test_close_during_boots_wins(home: Path):
    fleet = Fleet(home=home)
    fleet.open(network="10.1.0.0/16", gateway="10.1.255.254")
    with ThreadPoolExecutor(5) as pool:
        boots = [pool.submit(fleet.boot, spec(number)) for number in range(1, 30)]
        time.sleep(0.1)
        fleet.close()
        failures = [boot.exception() for boot in boots]
    assert all(error is None or isinstance(error, NodeError) for error in failures)
    assert any(failures)
    assert_nothing_left(home)


def test_close_finds_nodes_whose_records_were_lost(home: Path):
    fleet = Fleet(home=home)
    fleet.open(network="10.1.0.0/16", gateway="10.1.255.254")
    node = fleet.boot(spec(1))
    (fleet.directory / node.spec.instance_id / "node.json").unlink()
    fleet.close()
    assert not node.alive()


def test_close_ends_frozen_nodes_and_what_was_started_in_them(home: Path):
    fleet = Fleet(home=home)
    fleet.open(network="10.1.0.0/16", gateway="10.1.255.254")
    node = fleet.boot(spec(1))
    running = node.popen(["sleep", "4712"])
    node.freeze()
    fleet.close()
    assert running.wait(5) != 0


def ask(node: Node, port: int) -> str:
    script = f"exec 3<>/dev/tcp/10.1.255.254/{port}; echo question >&3; cat <&3"
    return node.run(["timeout", "5", "bash", "-c", script], timeout_s=10).stdout


def test_a_service_on_the_machines_loopback_is_reached_through_the_gateway(home: Path):
    fleet = Fleet(home=home)
    fleet.open(network="10.1.0.0/16", gateway="10.1.255.254")
    node = fleet.boot(spec(1))
    service = socket.create_server(("127.0.0.1", 0))

    def answer() -> None:
        client, _ = service.accept()
        with client:
            assert client.recv(100) == b"question\n"
            client.sendall(b"answer" * 50_000)

    thread = threading.Thread(target=answer)
    thread.start()
    listener = fleet.listen("10.1.255.254", 5710)
    host, port = service.getsockname()
    forwarder = Forwarder(listener=listener, host=host, port=port)
    forwarder.start()
    assert ask(node, 5710) == "answer" * 50_000
    thread.join()
    service.close()
    assert ask(node, 5710) == ""
    forwarder.stop()
    assert node.run(["bash", "-c", "exec 3<>/dev/tcp/10.1.255.254/5710"], timeout_s=5).returncode == 1


def test_a_port_in_use_inside_the_fabric_is_named(home: Path):
    fleet = Fleet(home=home)
    fleet.open(network="10.1.0.0/16", gateway="10.1.255.254")
    with (
        fleet.listen("10.1.255.254", 5710),
        pytest.raises(NodeError, match=r"cannot listen on 10.1.255.254:5710 inside the fabric: .*in use"),
    ):
        fleet.listen("10.1.255.254", 5710)
