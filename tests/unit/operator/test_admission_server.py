"""The webhook's server: reviews over TLS, and a peer that is silent or sends something else stops no other."""

import http.client
import json
import shutil
import socket
import ssl
from collections.abc import Iterator
from pathlib import Path

import pytest
from kubernetes_pki import Pki
from operated_jobs import manifest

from holdfast_operator.driver import AdmissionServer


class Webhook:
    def __init__(self, folder: Path) -> None:
        self.pki, self.folder, self.alive = Pki(folder / "pki"), folder, True
        self.certify("first")
        self.server = AdmissionServer(folder=folder, port=0, is_alive=lambda: self.alive, trial=lambda _: "")

    def certify(self, name: str) -> None:
        certificate, key = self.pki.sign(name)
        shutil.copy(certificate, self.folder / "tls.crt")
        shutil.copy(key, self.folder / "tls.key")

    def ask(self, method: str, path: str, body: bytes = b"") -> tuple[int, bytes]:
        context = ssl.create_default_context(cafile=self.pki.authority)
        line = http.client.HTTPSConnection("localhost", self.server.port, context=context, timeout=10)
        try:
            line.request(method, path, body or None)
            answer = line.getresponse()
            return answer.status, answer.read()
        finally:
            line.close()


@pytest.fixture
def webhook(tmp_path: Path) -> Iterator[Webhook]:
    made = Webhook(tmp_path)
    yield made
    made.server.close()


def review(**spec: object) -> bytes:
    request = {"uid": "u", "object": manifest(**spec), "oldObject": None}
    return json.dumps({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}).encode()


def test_a_review_is_answered_over_tls(webhook: Webhook) -> None:
    status, body = webhook.ask("POST", "/validate?timeout=5s", review(oops=1))
    answer = json.loads(body)["response"]
    assert (status, answer["allowed"]) == (200, False)
    assert answer["status"]["message"].startswith("spec.oops: unknown field")
    assert json.loads(webhook.ask("POST", "/validate", review())[1])["response"]["allowed"] is True


@pytest.mark.parametrize("body", [b"{", b"[]", b"{}", b'{"request": 3}'])
def test_what_is_no_review_is_refused(webhook: Webhook, body: bytes) -> None:
    assert webhook.ask("POST", "/validate", body)[0] == 400
    assert webhook.ask("POST", "/validate")[0] == 413


def test_an_operator_whose_loop_stands_still_is_not_alive(webhook: Webhook) -> None:
    assert webhook.ask("GET", "/healthz")[0] == 200
    webhook.alive = False
    assert webhook.ask("GET", "/healthz")[0] == 500
    assert webhook.ask("GET", "/other")[0] == 404


def test_a_silent_peer_stops_no_other(webhook: Webhook) -> None:
    with socket.create_connection(("localhost", webhook.server.port)):
        assert webhook.ask("GET", "/healthz")[0] == 200


def test_a_renewed_certificate_is_served_without_a_restart(webhook: Webhook) -> None:
    webhook.certify("second")
    webhook.server.reload()
    address = ("localhost", webhook.server.port)
    served = ssl.get_server_certificate(address)
    assert served.split() == (webhook.folder / "tls.crt").read_text().split()
