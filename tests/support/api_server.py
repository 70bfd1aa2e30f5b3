"""A real etcd and API server on the loopback, with certificates of a Pki, and requests to it."""

import contextlib
import http.client
import json
import os
import signal
import ssl
import subprocess
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec
from kubernetes_pki import Pki
from ports import free_ports

WAIT_S = 120.0


class ApiServer:
    """
    One control plane without controllers.

    Args:
        binaries: What `holdfast kubernetes build` made.
        flags: More of the API server's.
    """

    def __init__(self, *, binaries: Any, directory: Path, pki: Pki, flags: list[str]) -> None:
        self.pki, self._directory = pki, directory
        self._processes: list[subprocess.Popen[bytes]] = []
        self.port, etcd, peers = free_ports(3)
        self.url = f"https://127.0.0.1:{self.port}"
        self._admin = pki.sign("admin", organization="system:masters")
        certificate, key = pki.sign("server")
        tokens = directory / "tokens.key"
        tokens.write_bytes(
            ec.generate_private_key(ec.SECP256R1()).private_bytes(
                serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption()
            )
        )
        try:
            self._spawn(
                [
                    str(binaries.etcd),
                    f"--data-dir={directory}/etcd",
                    "--unsafe-no-fsync",
                    f"--listen-client-urls=http://127.0.0.1:{etcd}",
                    f"--advertise-client-urls=http://127.0.0.1:{etcd}",
                    f"--listen-peer-urls=http://127.0.0.1:{peers}",
                ]
            )
            self._server = [
                *binaries.argv("kube-apiserver"),
                *binaries.flags("kube-apiserver"),
                f"--etcd-servers=http://127.0.0.1:{etcd}",
                "--bind-address=127.0.0.1",
                f"--secure-port={self.port}",
                f"--tls-cert-file={certificate}",
                f"--tls-private-key-file={key}",
                f"--cert-dir={directory}",
                f"--client-ca-file={pki.authority}",
                "--service-cluster-ip-range=172.20.0.0/16",
                "--service-account-issuer=https://kubernetes.default.svc.cluster.local",
                f"--service-account-signing-key-file={tokens}",
                f"--service-account-key-file={tokens}",
                *flags,
            ]
            self._spawn(self._server)
            self._wait()
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        for process in reversed(self._processes):
            process.send_signal(signal.SIGKILL)
            process.wait(10)

    @contextlib.contextmanager
    def frozen(self) -> Iterator[None]:
        """The API server stands still: it takes connections, and answers nobody."""
        self._processes[-1].send_signal(signal.SIGSTOP)
        try:
            yield
        finally:
            self._processes[-1].send_signal(signal.SIGCONT)

    @contextlib.contextmanager
    def ended(self) -> Iterator[None]:
        """There is no API server, and afterwards another one on the same data."""
        self._processes[-1].kill()
        self._processes.pop().wait(10)
        yield
        self._spawn(self._server)
        self._wait()

    def request(self, method: str, path: str, body: Any = None, *, token: str = "", **headers: str) -> tuple[int, Any]:
        """Status and answer; as an administrator by certificate where there is no token."""
        context = ssl.create_default_context(cafile=self.pki.authority)
        if token:
            headers["Authorization"] = f"Bearer {token}"
        else:
            context.load_cert_chain(*self._admin)
        connection = http.client.HTTPSConnection("127.0.0.1", self.port, context=context, timeout=30)
        with contextlib.closing(connection):
            text = None if body is None else json.dumps(body)
            connection.request(method, path, text, {"Content-Type": "application/json", **headers})
            answer = connection.getresponse()
            content = answer.read()
            try:
                return answer.status, json.loads(content)
            except ValueError:
                return answer.status, content.decode()

    def _spawn(self, argv: Sequence[str]) -> None:
        with (self._directory / f"{len(self._processes)}.log").open("wb") as log:
            environment = {"PATH": os.environ["PATH"], "HOME": str(self._directory)}
            self._processes.append(
                subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environment)
            )

    def _wait(self) -> None:
        # a controller of the API server makes the default namespace, at times after /readyz is ok
        until = time.monotonic() + WAIT_S
        while time.monotonic() < until and all(process.poll() is None for process in self._processes):
            with contextlib.suppress(OSError):
                ready = self.request("GET", "/readyz") == (200, "ok")
                if ready and self.request("GET", "/api/v1/namespaces/default")[0] == 200:
                    return
            time.sleep(0.1)
        log = (self._directory / "1.log").read_text(errors="replace")[-2000:]
        raise AssertionError(f"the API server is not ready: {log}")
