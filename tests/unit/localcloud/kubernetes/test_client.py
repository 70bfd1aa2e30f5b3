"""The client of an API server, over TLS with an authority as old EKS clusters have it: no key identifiers."""

import json
import ssl
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from kubernetes_pki import Pki

from holdfast_common import KubernetesClient, KubernetesError

NODES = "/api/v1/nodes"
LIST = {"metadata": {"resourceVersion": "7"}, "items": [{"metadata": {"name": "a"}}]}


@dataclass
class Server:
    """An API server that answers each request with what a test queued, and records the requests."""

    client: KubernetesClient
    answers: list[tuple[int, Any]] = field(default_factory=list)
    requests: list[tuple[str, str, str, str, Any]] = field(default_factory=list)
    """Method, path, authorization, content type, body."""
    hangs: threading.Event = field(default_factory=threading.Event)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    class Handler(BaseHTTPRequestHandler):
        def handle_any(self) -> None:
            length = int(self.headers["Content-Length"] or 0)
            body = json.loads(self.rfile.read(length)) if length else None
            kind, token = self.headers["Content-Type"] or "", self.headers["Authorization"] or ""
            made.requests.append((self.command, self.path, token, kind, body))
            if not made.answers:
                made.hangs.wait(10)
                return
            status, answer = made.answers.pop(0)
            self.send_response(status)
            self.end_headers()
            self.wfile.write(answer if isinstance(answer, bytes) else json.dumps(answer).encode())

        do_GET = do_POST = do_PATCH = do_DELETE = handle_any  # noqa: N815

        def log_message(self, *_: object) -> None:
            pass

    pki = Pki(tmp_path, is_strict=False)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*pki.sign("server"))
    listener = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    listener.socket = context.wrap_socket(listener.socket, server_side=True)
    endpoint = f"https://127.0.0.1:{listener.server_port}"
    made = Server(KubernetesClient(endpoint=endpoint, authority=pki.authority.read_text(), token="t"))
    thread = threading.Thread(target=listener.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    yield made
    made.hangs.set()
    listener.shutdown()
    thread.join()
    listener.server_close()


def test_each_method_sends_its_verb_query_and_content_type(server: Server) -> None:
    server.answers = [(200, {"a": 1})] * 4 + [(200, b"two\nlines"), (200, {}), (200, {})]
    client, labels = server.client, {"metadata": {"labels": {"a": "b"}}}

    assert client.get("/apis/x/v1/things", labelSelector="a=b c") == {"a": 1}
    client.create("/apis/x/v1/things", {"kind": "Thing"})
    client.patch(f"{NODES}/n", labels)
    client.apply("/apis/x/v1/things/t", {"kind": "Thing"}, manager="eks", force=True)
    assert client.text("/api/v1/namespaces/n/pods/p/log", container="c") == "two\nlines"
    client.delete(f"{NODES}/n")
    client.delete(f"{NODES}/n", uid="u", grace_s=0)

    assert server.requests == [
        ("GET", "/apis/x/v1/things?labelSelector=a%3Db+c", "Bearer t", "", None),
        ("POST", "/apis/x/v1/things", "Bearer t", "application/json", {"kind": "Thing"}),
        ("PATCH", f"{NODES}/n", "Bearer t", "application/merge-patch+json", labels),
        (
            "PATCH", "/apis/x/v1/things/t?fieldManager=eks&force=true", "Bearer t", "application/apply-patch+yaml",
            {"kind": "Thing"},
        ),
        ("GET", "/api/v1/namespaces/n/pods/p/log?container=c", "Bearer t", "", None),
        ("DELETE", f"{NODES}/n", "Bearer t", "application/json", {"propagationPolicy": "Background"}),
        (
            "DELETE", f"{NODES}/n", "Bearer t", "application/json",
            {"propagationPolicy": "Background", "preconditions": {"uid": "u"}, "gracePeriodSeconds": 0},
        ),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("body", "message"),
    [({"kind": "Status", "message": "no such node"}, "no such node"), (b"<html>", "<html>"), (b"", "no reason given")],
)
def test_a_refusal_has_status_and_message(server: Server, body: Any, message: str) -> None:
    server.answers = [(404, body)]
    with pytest.raises(KubernetesError) as caught:
        server.client.get(NODES)
    assert (caught.value.code, str(caught.value)) == (404, message)


def test_deleting_a_missing_object_is_no_error_and_a_refused_one_is(server: Server) -> None:
    server.answers = [(404, {"message": "gone"}), (403, {"message": "forbidden"})]
    server.client.delete(f"{NODES}/n")
    with pytest.raises(KubernetesError, match="forbidden"):
        server.client.delete(f"{NODES}/n")


def test_a_server_that_does_not_answer_is_an_error_within_the_deadline(server: Server) -> None:
    assert not server.client.is_ready(timeout_s=0.2)
    server.answers = [(200, b"ok"), (500, b"etcd failed")]
    assert server.client.is_ready()
    assert not server.client.is_ready()


def test_a_closed_port_is_an_error_that_names_the_endpoint(server: Server, tmp_path: Path) -> None:
    authority = Pki(tmp_path / "other").authority.read_text()
    client = KubernetesClient(endpoint="https://127.0.0.1:9", authority=authority)
    with pytest.raises(KubernetesError, match=r"the API server at https://127\.0\.0\.1:9 does not answer") as caught:
        client.get(NODES)
    assert caught.value.code == 0


def test_a_watch_begins_with_the_list_and_hides_bookmarks(server: Server) -> None:
    events = [("BOOKMARK", "b"), ("ADDED", "c"), ("DELETED", "a"), ("ERROR", "old"), ("ADDED", "never")]
    lines = "".join(json.dumps({"type": kind, "object": name}) + "\n" for kind, name in events)
    server.answers = [(200, LIST), (200, lines.encode())]

    assert list(server.client.watch(NODES)) == [("SYNC", LIST), ("ADDED", "c"), ("DELETED", "a")]
    query = "watch=1&allowWatchBookmarks=true&resourceVersion=7&timeoutSeconds=240"
    assert [request[1] for request in server.requests] == [NODES, f"{NODES}?{query}"]


def test_a_watch_ends_when_its_caller_is_over_and_a_refused_one_is_an_error(server: Server) -> None:
    line = json.dumps({"type": "ADDED", "object": "c"}).encode() + b"\n"
    server.answers = [(200, LIST), (200, line), (200, LIST), (410, {"message": "too old"})]

    assert list(server.client.watch(NODES, is_over=lambda: True)) == [("SYNC", LIST)]
    with pytest.raises(KubernetesError, match="too old"):
        list(server.client.watch(NODES))


def test_a_watch_that_is_cut_is_an_error(server: Server) -> None:
    server.answers = [(200, LIST)]
    server.hangs.set()
    with pytest.raises(KubernetesError) as caught:
        list(server.client.watch(NODES))
    assert caught.value.code == 0
