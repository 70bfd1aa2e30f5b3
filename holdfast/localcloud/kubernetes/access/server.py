"""HTTPS server for the API server's reviews: mutual TLS; refuses other client certificates."""

import json
import logging
import socket
import ssl
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from holdfast.localcloud.kubernetes.access.reviews import Access, Review
from holdfast.localcloud.kubernetes.older_server import Indexes
from holdfast.localcloud.supervision import MOST_CONNECTIONS, HttpService, RequestHandler

AUTHENTICATE, AUTHORIZE, ADMIT, INDEX = "/authenticate", "/authorize", "/pods", "/indexes"
MOST_BYTES = 8 << 20
"""Of a review: one of a pod holds the pod, of which the API server takes three mebibytes."""
HANDSHAKE_S = 5.0

_log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class Certificates:
    """Files, PEM."""

    authority: Path
    certificate: Path
    key: Path
    client_name: str
    """The common name in the API server's client certificate."""


class AccessServer(HttpService):
    def __init__(
        self, *, access: Access, indexes: Indexes, listener: socket.socket, certificates: Certificates
    ) -> None:
        class Handler(_Handler):
            pass

        Handler.answers = {
            AUTHENTICATE: access.authenticate,
            AUTHORIZE: access.authorize,
            ADMIT: access.admit,
            INDEX: indexes.admit,
        }
        Handler.client_name = certificates.client_name
        Handler.context = _context(certificates)
        # One caller, the API server, which keeps its connections.
        super().__init__(
            name="kubernetes-access",
            listener=listener,
            handler=Handler,
            most_of_an_address=MOST_CONNECTIONS,
            request_s=Handler.timeout,
        )


def _context(certificates: Certificates) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.load_cert_chain(certificates.certificate, certificates.key)
    context.verify_mode = ssl.CERT_REQUIRED
    context.load_verify_locations(certificates.authority)
    return context


def common_names(certificate: Mapping[str, Any]) -> list[str]:
    return [value for part in certificate.get("subject", ()) for key, value in part if key == "commonName"]


class _Handler(RequestHandler):
    server_version = "holdfast-access"
    timeout = 90.0
    """The API server keeps connections, and opens others when it finds one closed."""
    answers: Mapping[str, Callable[[Mapping[str, Any]], Review]]
    client_name: str
    context: ssl.SSLContext

    def setup(self) -> None:
        self.request.settimeout(HANDSHAKE_S)
        self.request = self.context.wrap_socket(self.request, server_side=True)
        super().setup()

    def finish(self) -> None:
        super().finish()
        self.request.close()

    def do_POST(self) -> None:  # noqa: N802  the library's name
        length = self.headers.get("Content-Length", "")
        if not (length.isascii() and length.isdigit() and int(length) <= MOST_BYTES):
            self.close_connection = True
            self._answer(413, {"error": "a review has a Content-Length"})
            return
        body = self.rfile.read(int(length))
        if common_names(self.request.getpeercert() or {}) != [self.client_name]:
            self.close_connection = True
            self._answer(403, {"error": "this is for the API server of the cluster"})
            return
        answer = self.answers.get(self.path.partition("?")[0])
        if answer is None:
            self._answer(404, {"error": f"there is no {self.path[:80]}"})
            return
        try:
            review = json.loads(body)
        except (ValueError, RecursionError):
            review = None
        if not isinstance(review, dict):
            self._answer(400, {"error": "a review is a JSON object"})
            return
        try:
            reply = answer(review)
        except Exception:  # noqa: BLE001 - the API server waits for an answer, which is no
            _log.warning("%s failed", self.path, exc_info=True)
            self._answer(500, {"error": "the review failed"})
            return
        status = reply.get("status", {})
        why = status.get("error") or status.get("evaluationError")
        if why:
            _log.info("%s: access denied: %s", self.path, why)
        self._answer(200, reply)

    def _answer(self, status: int, answer: Mapping[str, Any]) -> None:
        self.send(status, json.dumps(answer).encode(), kind="application/json")
