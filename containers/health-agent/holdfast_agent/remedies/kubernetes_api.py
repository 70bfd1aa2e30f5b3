"""Kubernetes API for a pod's service account, with the standard library and a deadline."""

import json
import os
import time
from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Any, Optional
from urllib.parse import urlencode

from holdfast_agent.aws import AwsError, exchange
from holdfast_common import KubernetesError, kubernetes_trust

ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
METADATA_ONLY = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json"
MOST_BYTES = 64 << 20
MOST_TEXT = 300
"""Of a refusal, in characters."""


class KubernetesApi:
    """One API server, by default the pod's; ``account`` is a folder with ``token`` and ``ca.crt``."""

    def __init__(self, *, address: str = "", account: Path = ACCOUNT, timeout_s: float = 10.0) -> None:
        host, port = os.environ.get("KUBERNETES_SERVICE_HOST", ""), os.environ.get("KUBERNETES_SERVICE_PORT", "443")
        self._address = address or (f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}")
        self._account, self._timeout_s = account, timeout_s
        self.now_s = 0.0
        """The server's clock at the last answer: one for all nodes."""

    def get(self, path: str, *, accept: str = "application/json", **query: str) -> "dict[str, Any]":
        return self._request("GET", f"{path}?{urlencode(query)}" if query else path, accept=accept)

    def patch(self, path: str, body: Mapping[str, Any], *, kind: str = "merge-patch") -> "dict[str, Any]":
        return self._request("PATCH", path, body=body, content_type=f"application/{kind}+json")

    def post(self, path: str, body: Mapping[str, Any]) -> "dict[str, Any]":
        return self._request("POST", path, body=body)

    def _request(
        self,
        method: str,
        path: str,
        *,
        body: Optional[Mapping[str, Any]] = None,
        accept: str = "application/json",
        content_type: str = "application/json",
    ) -> "dict[str, Any]":
        try:
            token = (self._account / "token").read_text("ascii").strip()  # renewed by the kubelet: read each time
            answer = exchange(
                method,
                self._address + path,
                headers={"Accept": accept, "Content-Type": content_type, "Authorization": f"Bearer {token}"},
                body=None if body is None else json.dumps(body).encode(),
                timeout_s=self._timeout_s,
                through_proxy=False,
                context=kubernetes_trust((self._account / "ca.crt").read_text("ascii")),
                most_bytes=MOST_BYTES,
            )
        except (AwsError, OSError, ValueError) as error:  # nobody answered, or there is no token
            raise KubernetesError(0, f"{method} {path}: {error}") from None
        if answer.status >= 300:
            refused = KubernetesError.from_body(answer.status, answer.body)
            raise KubernetesError(refused.code, f"{method} {path}: {refused.code} {str(refused)[:MOST_TEXT]}")
        self.now_s = _seconds(answer.headers.get("date"))
        try:
            document = json.loads(answer.body)
        except ValueError as error:
            raise KubernetesError(0, f"{method} {path}: {error}") from None
        return document if isinstance(document, dict) else {}


def _seconds(date: Optional[str]) -> float:
    try:
        return parsedate_to_datetime(date or "").timestamp()
    except (TypeError, ValueError, IndexError):
        return time.time()
