"""Each client of a Kubernetes API trusts what EKS has, and no more: on 3.11 with the flags that Python 3.13 sets."""

import base64
import contextlib
import datetime
import json
import ssl
import tempfile
import threading
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from kubernetes_pki import Pki
from simulated_nodes import Agent, Board, run

from holdfast.cli.kubernetes import execute
from holdfast.localcloud.kubernetes.control import Authority
from holdfast_agent.remedies import KubernetesMarks
from holdfast_agent.service import Outbox
from holdfast_agent.signals import Happening
from holdfast_common import KubernetesClient, KubernetesError, kinds, parse_events, timeline
from holdfast_constructs.helm_installer._cluster import Cluster
from holdfast_constructs.helm_installer._nodes import count_ready

REFUSED = "CERTIFICATE_VERIFY_FAILED"


@dataclass
class Server:
    """An API server that has no node."""

    port: int = 0
    authority: str = ""
    asked: list[str] = field(default_factory=list)

    @property
    def url(self) -> str:
        return f"https://127.0.0.1:{self.port}"


@contextlib.contextmanager
def serving(pair: tuple[Path, Path], authority: Path) -> Iterator[Server]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            found.asked.append(self.path)
            body = json.dumps({"items": []}).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*pair)
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    found = Server(port=server.server_port, authority=authority.read_text())
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield found
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.fixture(autouse=True)
def _as_python_313(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its default context has these two flags; docs.python.org/3.13/library/ssl.html#ssl.create_default_context."""
    before = ssl.create_default_context

    def strict(*args: Any, **more: Any) -> ssl.SSLContext:
        made = before(*args, **more)
        made.verify_flags |= ssl.VERIFY_X509_STRICT | ssl.VERIFY_X509_PARTIAL_CHAIN
        return made

    monkeypatch.setattr(ssl, "create_default_context", strict)


# --- the clients


def of_the_local_cloud(server: Server, folder: Path) -> None:
    certificate, key = Pki(folder / "client").sign("client")
    pair = certificate.read_bytes() + key.read_bytes()
    KubernetesClient(endpoint=server.url, authority=server.authority, certificate=pair).get("/api/v1/nodes")


def client_of(server: Server) -> KubernetesClient:
    return KubernetesClient(endpoint=server.url, authority=server.authority, token="of somebody")


def of_the_command_line(server: Server, _: Path) -> None:
    client_of(server).get("/api/v1/nodes")


def of_commands_in_pods(server: Server, _: Path) -> None:
    try:
        execute(client_of(server), namespace="team", pod="job-0", container="train", argv=["true"])
    except KubernetesError as error:
        if error.code != 200:  # this server knows no WebSocket, and says so once it is trusted
            raise


def of_the_installer(server: Server, _: Path) -> None:
    authority = base64.b64encode(server.authority.encode()).decode()
    count_ready(Cluster(name="eks", endpoint=server.url, certificate_authority=authority), token="t", name="demo")


Ask = Callable[[Server, Path], None]
CLIENTS = [of_the_local_cloud, of_the_command_line, of_commands_in_pods, of_the_installer]
every_client = pytest.mark.parametrize("ask", CLIENTS, ids=lambda ask: ask.__name__)


def test_python_313_trusts_no_authority_without_key_identifiers(tmp_path: Path) -> None:
    pki = Pki(tmp_path, is_strict=False)
    with serving(pki.sign("server"), pki.authority) as server, pytest.raises(OSError, match=REFUSED):
        urllib.request.urlopen(server.url, context=ssl.create_default_context(cafile=pki.authority), timeout=10)
    assert server.asked == []


def test_the_key_of_a_client_is_in_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "missing"))
    pki = Pki(tmp_path / "pki")
    with serving(pki.sign("server"), pki.authority) as server:
        of_the_local_cloud(server, tmp_path)
    assert len(server.asked) == 1


@every_client
def test_an_authority_as_some_eks_clusters_have_is_trusted(ask: Ask, tmp_path: Path) -> None:
    pki = Pki(tmp_path / "pki", is_strict=False)
    with serving(pki.sign("server"), pki.authority) as server:
        ask(server, tmp_path)
    assert len(server.asked) == 1


@every_client
@pytest.mark.parametrize("fault", ["another name", "expired", "another authority"])
@pytest.mark.parametrize("is_strict", [True, False], ids=["as ours", "as some of EKS"])
def test_what_is_not_the_server_is_sent_nothing(ask: Ask, fault: str, is_strict: bool, tmp_path: Path) -> None:
    pki = Pki(tmp_path / "pki", is_strict=is_strict)
    pair = pki.sign(
        "server",
        place="127.0.0.2" if fault == "another name" else "127.0.0.1",
        ends_in=datetime.timedelta(minutes=-1 if fault == "expired" else 60),
    )
    trusted = Pki(tmp_path / "other", is_strict=is_strict) if fault == "another authority" else pki
    with serving(pair, trusted.authority) as server, pytest.raises(Exception, match=REFUSED):
        ask(server, tmp_path)
    assert server.asked == []


def test_an_incident_says_what_certificate_keeps_its_remedy_from_going_on(tmp_path: Path) -> None:
    pki, other = Pki(tmp_path / "pki"), Pki(tmp_path / "other")
    with serving(pki.sign("server"), pki.authority) as server:
        authority = other.authority.read_text()
        marks = KubernetesMarks(
            client=lambda: KubernetesClient(endpoint=server.url, authority=authority, token="of the agent"),
            host="hyperpod-i-1",
        )
        agent = Agent(Board(["hyperpod-i-1"]), "hyperpod-i-1", way="label", marks=marks)
        agent.accuse()
        run([agent], for_s=0)
        assert REFUSED in agent.remediator.problem, "at once"
        run([agent], for_s=90)
    outbox = Outbox(path=tmp_path / "events.jsonl", cluster="demo", node="i-1")
    detail = {"incident": "i1", "severity": "device", "when": "now"}
    outbox.add([Happening(kind=kinds.VERDICT, fault="gpu-lost", action="replace", detail=detail), *agent.own])
    outbox.flush()
    events = parse_events((tmp_path / "events.jsonl").read_text().splitlines()).events
    (incident,) = timeline(events).incidents
    assert [step.outcome for step in incident.remedies] == ["refused"]
    assert [line.text for line in incident.evidence if REFUSED in line.text], incident.evidence


# --- the authority of a local cluster


@pytest.fixture
def files(tmp_path: Path) -> tuple[Authority, Callable[[str, bytes], Path]]:
    def file(name: str, content: bytes) -> Path:
        (tmp_path / name).write_bytes(content)
        return tmp_path / name

    return Authority(tmp_path / "pki"), file


def test_python_313_trusts_the_authority_of_a_local_cluster(
    files: tuple[Authority, Callable[[str, bytes], Path]],
) -> None:
    authority, file = files
    own = authority.server("kube-apiserver", addresses=["127.0.0.1"])
    trusted = file("ca.crt", authority.certificate)
    with serving((file("s.crt", own.certificate), file("s.key", own.key)), trusted) as server:
        context = ssl.create_default_context(cafile=trusted)
        with urllib.request.urlopen(server.url, context=context, timeout=10) as answer:
            assert json.load(answer) == {"items": []}


def test_python_313_trusts_the_clients_of_a_local_cluster(
    files: tuple[Authority, Callable[[str, bytes], Path]],
) -> None:
    authority, file = files
    own, client = authority.server("s", names=["s"]), authority.client("kubelet", groups=["system:nodes"])
    trusted = file("ca.crt", authority.certificate)
    serves, asks = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=trusted), ssl.create_default_context()
    serves.verify_mode = ssl.CERT_REQUIRED
    serves.load_cert_chain(file("s.crt", own.certificate), file("s.key", own.key))
    asks.load_verify_locations(trusted)
    asks.load_cert_chain(file("c.crt", client.certificate), file("c.key", client.key))
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    ends = [
        asks.wrap_bio(to_client, to_server, server_hostname="s"),
        serves.wrap_bio(to_server, to_client, server_side=True),
    ]
    for end in ends * 3:
        with contextlib.suppress(ssl.SSLWantReadError):
            end.do_handshake()
    seen: Any = ends[1].getpeercert()
    assert ("commonName", "kubelet") in [pair for part in seen["subject"] for pair in part]
