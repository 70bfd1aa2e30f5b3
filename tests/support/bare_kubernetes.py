"""
An API server of Kubernetes with its etcd, and nothing else: no node, no controller. What charts and add-ons bring is
taken or refused by it as by a whole cluster.

Its log-in takes every token that `aws eks get-token` makes: who is let in is no question here.
"""

import base64
import contextlib
import json
import ssl
import subprocess
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from ports import free_ports

from holdfast.localcloud.kubernetes.binaries import Binaries
from holdfast_common import KubernetesError

READY_WITHIN_S = 90


class ApiServer:
    """One that runs."""

    def __init__(self, *, endpoint: str, authority: bytes) -> None:
        self.endpoint = endpoint
        self.certificate_authority = base64.b64encode(authority).decode()
        self._trusted = ssl.create_default_context(cadata=authority.decode())

    token = "admin-token"

    def ask(self, path: str, *, method: str = "GET", body: Any = None, kind: str = "application/json") -> Any:
        """What it answers; None when there is no such thing."""
        headers = {"Authorization": f"Bearer {self.token}", "Content-Type": kind}
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(f"{self.endpoint}{path}", data=data, headers=headers, method=method)
        try:
            with urllib.request.urlopen(request, context=self._trusted, timeout=30) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as error:
            if error.code == 404:
                return None
            raise

    def get(self, path: str) -> Any:
        """As `holdfast_common.KubernetesClient` has it, here and below."""
        found = self.ask(path)
        if found is None:
            raise KubernetesError(404, path)
        return found

    def apply(self, path: str, body: Mapping[str, Any], *, manager: str, force: bool = False) -> Any:
        where = f"{path}?fieldManager={manager}&force={str(force).lower()}"
        try:
            return self.ask(where, method="PATCH", body=body, kind="application/apply-patch+yaml")
        except urllib.error.HTTPError as error:
            raise KubernetesError(error.code, error.read().decode()) from None

    def delete(self, path: str) -> None:
        self.ask(path, method="DELETE")


@contextlib.contextmanager
def api_server(folder: Path, binaries: Binaries) -> Iterator[ApiServer]:
    """Start one, and end it with everything that it is made of."""
    with contextlib.ExitStack() as stack:
        webhook = stack.enter_context(_webhook())
        etcd, peers, port = free_ports(3)
        _start(
            stack, folder, "etcd", str(binaries.etcd), f"--data-dir={folder}/etcd.data", "--unsafe-no-fsync",
            f"--listen-client-urls=http://127.0.0.1:{etcd}", f"--advertise-client-urls=http://127.0.0.1:{etcd}",
            f"--listen-peer-urls=http://127.0.0.1:{peers}", f"--initial-advertise-peer-urls=http://127.0.0.1:{peers}",
            f"--initial-cluster=default=http://127.0.0.1:{peers}", "--log-level=error",
        )  # fmt: skip
        key = folder / "tokens.key"
        subprocess.run(["openssl", "ecparam", "-name", "prime256v1", "-genkey", "-noout", "-out", key], check=True)
        (folder / "tokens.csv").write_text(f'{ApiServer.token},admin,admin,"system:masters"\n')
        (folder / "login.json").write_text(json.dumps({
            "apiVersion": "v1", "kind": "Config", "current-context": "login", "users": [{"name": "login"}],
            "clusters": [{"name": "login", "cluster": {"server": webhook}}],
            "contexts": [{"name": "login", "context": {"cluster": "login", "user": "login"}}],
        }))  # fmt: skip
        server = _start(
            stack, folder, "apiserver", *binaries.argv("kube-apiserver"), "--bind-address=127.0.0.1",
            f"--secure-port={port}", f"--etcd-servers=http://127.0.0.1:{etcd}", f"--cert-dir={folder}",
            f"--token-auth-file={folder}/tokens.csv", "--authorization-mode=RBAC", "--allow-privileged=true",
            f"--authentication-token-webhook-config-file={folder}/login.json", "--profiling=false",
            "--authentication-token-webhook-version=v1", "--disable-admission-plugins=ServiceAccount",
            f"--service-account-key-file={key}", f"--service-account-signing-key-file={key}",
            "--service-account-issuer=https://kubernetes.default.svc", "--service-cluster-ip-range=172.20.0.0/16",
        )  # fmt: skip
        yield _ready(server, folder, port)


def _ready(server: "subprocess.Popen[bytes]", folder: Path, port: int) -> ApiServer:
    certificate = folder / "apiserver.crt"
    deadline = time.monotonic() + READY_WITHIN_S
    while server.poll() is None and time.monotonic() < deadline:
        with contextlib.suppress(OSError, ValueError):
            made = ApiServer(endpoint=f"https://127.0.0.1:{port}", authority=certificate.read_bytes())
            if made.ask("/api/v1/namespaces/kube-system") is not None:
                return made
        time.sleep(0.2)
    raise AssertionError((folder / "apiserver.log").read_text()[-3000:])


def _start(stack: contextlib.ExitStack, folder: Path, name: str, *argv: str) -> "subprocess.Popen[bytes]":
    log = stack.enter_context((folder / f"{name}.log").open("wb"))
    child = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=folder)
    stack.callback(child.wait)
    stack.callback(child.kill)
    return child


@contextlib.contextmanager
def _webhook() -> Iterator[str]:
    class Login(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            review = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            known = review["spec"]["token"].startswith("k8s-aws-v1.")
            user = {"username": "installer", "groups": ["system:masters"]} if known else {}
            answer = {**review, "status": {"authenticated": known, "user": user}}
            body = json.dumps(answer).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Login)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.1}, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
