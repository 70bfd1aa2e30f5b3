"""
EKS Pod Identity Agent for all nodes: credentials for the SDKs in pods.

Source: aws/eks-pod-identity-agent at d4dc0f3 (2026-03-17), internal/validation/request.go, pkg/handlers and pkg/errors:
validation of requests, messages and statuses of refusals.
"""

import base64
import binascii
import json
import logging
import re
import socket
import time
import uuid
from typing import Any

from holdfast.localcloud.kubernetes.access.pod_identity import PodIdentity, PodIdentityError
from holdfast.localcloud.supervision import HttpService, RequestHandler

ADDRESS, PORT = "169.254.170.23", 80
HOSTS = (ADDRESS, "fd00:ec2::23")
HOST = re.compile(r"(?:\[(?P<six>[^\]]*)\]|(?P<name>[^:]*))(?::\d+)?")
PATH = "/v1/credentials"
MOST_TOKEN_BYTES = 1 << 14

_log = logging.getLogger(__name__)


class PodIdentityAgent(HttpService):
    def __init__(self, *, listener: socket.socket, identity: PodIdentity) -> None:
        class Handler(_Handler):
            pass

        Handler.identity = identity
        super().__init__(name="pod-identity-agent", listener=listener, handler=Handler)


def refusal_of_request(*, host: str, token: str, now: float) -> tuple[str, int] | None:
    """Return reason and status for a request that is refused without asking EKS; None otherwise. Pure."""
    found = HOST.fullmatch(host)
    name = (found["six"] or found["name"]) if found is not None else host
    if name not in HOSTS:
        why = f"Called agent through invalid address, please use either [{' '.join(HOSTS)}] address not {name}"
        return f"Access Denied. {why}", 403
    if not token:
        return "Service account token cannot be empty", 400
    claims = _claims(token)
    if claims is None:
        return "Service account token cannot be parsed: token is malformed", 400
    failed = "Service account token failed basic claim validations: "
    if isinstance(claims.get("exp"), int | float) and claims["exp"] < now:
        return f"{failed}token is expired", 400
    if isinstance(claims.get("nbf"), int | float) and claims["nbf"] > now:
        return f"{failed}token is not valid yet", 400
    return None


def _claims(token: str) -> dict[str, Any] | None:
    parts = token.split(".")
    if len(parts) != 3 or len(token) > MOST_TOKEN_BYTES or not token.isascii():
        return None
    try:
        header, claims = (json.loads(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4))) for part in parts[:2])
    except (binascii.Error, ValueError, RecursionError):
        return None
    return claims if isinstance(header, dict) and isinstance(claims, dict) else None


class _Handler(RequestHandler):
    server_version = "EKS-Pod-Identity-Agent"
    identity: PodIdentity

    def do_GET(self) -> None:  # noqa: N802  the library's name
        token = self.headers.get("Authorization", "")
        if self.path.partition("?")[0] != PATH:
            self._refuse("404 page not found", 404)
            return
        refused = refusal_of_request(host=self.headers.get("Host", ""), token=token, now=time.time())
        if refused is not None:
            self._refuse(*refused)
            return
        try:
            made = self.identity.credentials(token)
        except PodIdentityError as error:
            fault = "client" if error.status < 500 else "server"
            self._refuse(f"[{uuid.uuid4()}]: ({error.code}): {error.message}, fault: {fault}", error.status)
        except Exception:  # noqa: BLE001 - a pod waits for an answer
            _log.warning("pod identity failed", exc_info=True)
            self._refuse("Unable to serialize credentials", 500)
        else:
            self._answer(200, json.dumps(made), "application/json")

    def _refuse(self, message: str, status: int) -> None:
        _log.info("pod identity: %s %s", status, message)
        self._answer(status, message + "\n", "text/plain; charset=utf-8")

    def _answer(self, status: int, body: str, kind: str) -> None:
        self.send(status, body.encode(), kind=kind, headers={"X-Content-Type-Options": "nosniff"})
