"""The program that stands in for pods' programs, as it runs: DNS beside an API server, and what needs no cluster."""

import signal
import subprocess
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.error import HTTPError

import pytest
from dns_questions import NO_SUCH_NAME, NOT_NOW, Answer, ask
from names_api import TOKEN, ApiServer
from ports import free_port
from waiting import eventually

if TYPE_CHECKING:
    from holdfast.localcloud.kubernetes.binaries import Binaries

pytestmark = pytest.mark.kubernetes

Start = Callable[..., subprocess.Popen[bytes]]
MIB = 2**20


@pytest.fixture
def api() -> Iterator[ApiServer]:
    server = ApiServer()
    server.put("namespaces", "default")
    server.put(
        "services", "web", spec={"clusterIP": "172.20.0.7", "ports": [{"name": "http", "port": 80, "protocol": "TCP"}]}
    )
    server.put("services", "job", spec={"clusterIP": "None"})
    yield server
    server.close()


@pytest.fixture
def start(binaries: "Binaries", tmp_path: Path) -> Iterator[Start]:
    """Start the program; what a test leaves running is ended."""
    if binaries.stand_ins is None:
        pytest.skip(f"{binaries.directory} has no holdfast-stand-ins")
    program, running = binaries.stand_ins, []

    def started(*arguments: str) -> subprocess.Popen[bytes]:
        with (tmp_path / "log").open("ab") as log:
            running.append(subprocess.Popen([program, *arguments], stdout=log, stderr=log, cwd=tmp_path, env={}))
        return running[-1]

    yield started
    for process in running:
        process.kill()
        process.wait()


@pytest.fixture
def server(start: Start, api: ApiServer, tmp_path: Path) -> tuple[str, int]:
    """A DNS server that has not been asked yet."""
    return _serve(start, api, tmp_path)[0]


def _serve(start: Start, api: ApiServer, folder: Path, *more: str) -> tuple[tuple[str, int], subprocess.Popen[bytes]]:
    (folder / "kubeconfig").write_text(
        f"current-context: here\nclusters: [{{name: c, cluster: {{server: '{api.url}'}}}}]\n"
        "contexts: [{name: here, context: {cluster: c, user: u}}]\n"
        f"users: [{{name: u, user: {{token: {TOKEN}}}}}]\n"
    )
    address = ("127.0.0.1", free_port())
    health = [f"--health-address=127.0.0.1:{free_port()}", f"--ready-address=127.0.0.1:{free_port()}"]
    process = start(
        "dns", "--kubeconfig", str(folder / "kubeconfig"), f"--address=127.0.0.1:{address[1]}", "--lameduck=100ms",
        *(more or health), "-conf", "/etc/coredns/Corefile",
    )  # fmt: skip
    eventually(lambda: _answers(address), "an answer")
    return address, process


def _answers(address: tuple[str, int]) -> bool:
    try:
        ask(address, "cluster.local", "SOA")
    except OSError:
        return False
    return True


def _endpoints(*addresses: str, unready: tuple[str, ...] = ()) -> list[dict[str, Any]]:
    return [{"addresses": [{"ip": ip} for ip in addresses], "notReadyAddresses": [{"ip": ip} for ip in unready]}]


def _wait(server: tuple[str, int], name: str, *addresses: str) -> Answer:
    found: Answer = eventually(
        lambda: (got := ask(server, name)).addresses == addresses and got, f"{name} at {addresses}"
    )
    return found


def test_names_follow_what_the_api_server_says(api: ApiServer, server: tuple[str, int]) -> None:
    assert _wait(server, "web.default.svc.cluster.local", "172.20.0.7").authoritative
    assert ask(server, "job.default.svc.cluster.local").code == NO_SUCH_NAME

    api.put("endpoints", "job", subsets=_endpoints("100.64.0.1", "100.64.0.2", unready=("100.64.0.3",)))
    _wait(server, "job.default.svc.cluster.local", "100.64.0.1", "100.64.0.2")
    _wait(server, "100-64-0-2.job.default.svc.cluster.local", "100.64.0.2")

    api.delete("services", "job")
    eventually(lambda: ask(server, "job.default.svc.cluster.local").code == NO_SUCH_NAME, "the end of the service")
    assert ask(server, "example.com").code == NO_SUCH_NAME


def test_what_changed_while_a_watch_was_cut_is_known_afterwards(api: ApiServer, server: tuple[str, int]) -> None:
    _wait(server, "web.default.svc.cluster.local", "172.20.0.7")
    eventually(lambda: all(api.watches.values()), "watches of all kinds")
    api.refuses = True
    api.cut()
    api.delete("services", "web")
    api.put("services", "api", spec={"clusterIP": "172.20.0.8"})
    assert ask(server, "web.default.svc.cluster.local").addresses == ("172.20.0.7",), (
        "without the API server it keeps what it had"
    )

    api.refuses = False
    _wait(server, "api.default.svc.cluster.local", "172.20.0.8")
    assert ask(server, "web.default.svc.cluster.local").code == NO_SUCH_NAME


def test_two_hundred_addresses_are_had_by_tcp_and_within_twelve_mebibytes(
    start: Start, api: ApiServer, tmp_path: Path
) -> None:
    api.put("endpoints", "job", subsets=_endpoints(*(f"100.64.1.{number}" for number in range(200))))
    server, process = _serve(start, api, tmp_path)
    name = "job.default.svc.cluster.local"

    assert ask(server, name).truncated
    for _ in range(50):
        assert len(ask(server, name, tcp=True).addresses) == 200
    assert _own_bytes(process.pid) < 12 * MIB


def _own_bytes(pid: int) -> int:
    """What a process has in memory that is not of its program's file, which all of them share."""
    rows = dict(line.split(":") for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()[1:])
    return int(rows["Pss_Anon"].split()[0]) * 1024


def test_names_of_the_machines_hosts_exist_where_a_file_is_given(start: Start, api: ApiServer, tmp_path: Path) -> None:
    (tmp_path / "hosts").write_text("10.1.0.5 ip-10-1-0-5 # a node\n")
    server, _ = _serve(start, api, tmp_path, "--hosts", "hosts", "--health-address=", "--ready-address=")
    assert ask(server, "IP-10-1-0-5").addresses == ("10.1.0.5",)
    assert (ask(server, "ip-10-1-0-5", "AAAA").code, ask(server, "ip-10-1-0-6").code) == (0, NO_SUCH_NAME)


def test_a_server_without_the_api_server_is_alive_and_not_ready(start: Start, api: ApiServer, tmp_path: Path) -> None:
    api.refuses = True
    health, ready = free_port(), free_port()
    server, process = _serve(
        start, api, tmp_path, f"--health-address=127.0.0.1:{health}", f"--ready-address=127.0.0.1:{ready}"
    )
    assert eventually(lambda: _status(health, "/health")) == 200
    assert _status(ready, "/ready") == 503
    assert ask(server, "web.default.svc.cluster.local").code == NOT_NOW

    api.refuses = False
    eventually(lambda: _status(ready, "/ready") == 200, "readiness")
    _wait(server, "web.default.svc.cluster.local", "172.20.0.7")

    process.send_signal(signal.SIGTERM)
    assert process.wait(timeout=30) == 0


def _status(port: int, path: str) -> int:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=5) as answer:
            status: int = answer.status
            return status
    except HTTPError as refused:
        return refused.code
    except OSError:
        return 0


def test_a_liveness_probe_says_that_there_is_no_driver_and_then_that_there_is(start: Start, tmp_path: Path) -> None:
    port = free_port()
    start("livenessprobe", "--csi-address=csi.sock", f"--health-port={port}")
    assert eventually(lambda: _status(port, "/healthz")) == 500

    start("fsx-csi", "--mode=controller", f"--endpoint=unix:{tmp_path}/csi.sock", "--logging-format=text")
    eventually(lambda: _status(port, "/healthz") == 200, "a driver")


def test_a_sandboxs_process_reaps_and_ends_when_told(binaries: "Binaries") -> None:
    with subprocess.Popen(["/bin/sh", "-c", 'sleep 0.5 & exec "$0" pause', str(binaries.stand_ins)]) as process:
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
        try:
            eventually(
                lambda: Path(f"/proc/{process.pid}/comm").read_text().startswith("holdfast-stand"), "the program"
            )
            eventually(lambda: children.read_text() == "", "the end of its child")
        finally:
            process.terminate()
        assert process.wait(timeout=30) == 0


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((), "usage: holdfast-stand-ins COMMAND"),
        (("nosuch",), '"nosuch"'),
        (("device-plugin",), "--resource is missing"),
        (("device-plugin", "--resource=a/b", "--count=many"), '--count "many"'),
        (("dns",), "not in a cluster"),
        (("fsx-csi", "--endpoint=tcp://127.0.0.1:1"), "not of the form unix:/path"),
        (("node-driver-registrar",), "kubelet-registration-path"),
    ],
)
def test_a_mistake_is_said_in_one_line(binaries: "Binaries", arguments: tuple[str, ...], words: str) -> None:
    done = subprocess.run(
        [str(binaries.stand_ins), *arguments], capture_output=True, text=True, timeout=60, check=False, env={}
    )
    assert done.returncode
    assert words in done.stderr
    assert done.stderr.count("\n") == 1
