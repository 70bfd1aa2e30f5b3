"""The API of Kubernetes as a pod's service account may use it, with the standard library and a deadline."""

import json
import os
import ssl
import time
import urllib.error
import urllib.request
from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Any, Optional
from urllib.parse import urlencode

ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
METADATA_ONLY = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json"
MOST_BYTES = 64 << 20
_CHUNK_BYTES = 1 << 18


class KubernetesError(Exception):
    """No answer, or a refusal; ``status`` is that of HTTP, 0 where nobody answered."""

    def __init__(self, message: str, *, status: int = 0) -> None:
        super().__init__(message)
        self.status = status


class KubernetesApi:
    """
    One API server.

    Args:
        address: Such as https://172.20.0.1:443. Default: where a pod finds it
        account: Folder with ``token`` and ``ca.crt``. Default: a pod's
        timeout_s: Of a request. Default: 10 s
    """

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
        until = time.monotonic() + self._timeout_s
        try:
            token = (self._account / "token").read_text("ascii").strip()  # renewed by the kubelet: read each time
            context = ssl.create_default_context(cafile=str(self._account / "ca.crt"))
            request = urllib.request.Request(  # noqa: S310
                self._address + path,
                data=None if body is None else json.dumps(body).encode(),
                headers={"Accept": accept, "Content-Type": content_type, "Authorization": f"Bearer {token}"},
                method=method,
            )
            opener = urllib.request.build_opener(
                urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=context)
            )
            with opener.open(request, timeout=self._timeout_s) as answer:
                self.now_s = _seconds(answer.headers.get("Date"))
                content = _read(answer, until=until)
        except urllib.error.HTTPError as error:
            with error:
                said = error.read(2000).decode("utf-8", "replace")
            raise KubernetesError(f"{method} {path}: {error.code} {_message(said)}", status=error.code) from None
        except KubernetesError:
            raise
        except Exception as error:  # noqa: BLE001 - sockets, TLS, a token that is not there: nobody answered
            raise KubernetesError(f"{method} {path}: {getattr(error, 'reason', None) or error!r}") from None
        try:
            document = json.loads(content)
        except ValueError as error:
            raise KubernetesError(f"{method} {path}: {error}") from None
        return document if isinstance(document, dict) else {}


def _read(answer: Any, *, until: float) -> bytes:
    read = bytearray()
    while part := answer.read1(_CHUNK_BYTES):
        read += part
        if time.monotonic() > until or len(read) > MOST_BYTES:
            raise KubernetesError("the answer took too long, or is too large")
    return bytes(read)


def _seconds(date: Optional[str]) -> float:
    try:
        return parsedate_to_datetime(date or "").timestamp()
    except (TypeError, ValueError, IndexError):
        return time.time()


def _message(said: str) -> str:
    try:
        return str(json.loads(said).get("message", said))[:300]
    except (ValueError, AttributeError):
        return said[:300]
