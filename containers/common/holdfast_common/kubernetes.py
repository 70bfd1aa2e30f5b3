"""
Client of a Kubernetes API server: JSON in and out, each request with a deadline.

Standard library, since no client on PyPI allows any path and kind, servers from 1.20 to 1.36, deadlines, errors with
the server's status and message, and an authority without key identifiers. Compared on 2026-11-29:

- lightkube 1.0.1: no discovery and no plain path (``/version``, ``/apis``); needs 14 packages.
- kr8s 0.20.15: supports 1.28 to 1.35; no deadline by default; repeats a refused request (403) three times; drops the
  message of a 5xx answer; leaves client keys in temporary files; needs 18 packages.
- kubernetes 37.0.1: 104 MB; VERIFY_X509_STRICT cannot be cleared (kubernetes-client/python#2394); a refused exec has
  status 0 and no message (kubernetes-client/python#1849); from 37.0.2 on it conflicts with botocore (python-dateutil).
- kubernetes-asyncio 36.1.0: no synchronous interface.

With any of them, paths, TLS context and translated errors stay necessary: most of this file.
"""

import contextlib
import http.client
import json
import os
import ssl
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Optional
from urllib.parse import urlencode, urlsplit

TIMEOUT_S = 15.0
WATCH_S = 240
"""Lifetime of a watch; the server ends it."""
MANAGER = "holdfast"
JOB_GROUP, JOB_VERSION, JOB_KIND, JOB_PLURAL = "holdfast.dev", "v1alpha1", "HoldfastJob", "holdfastjobs"
"""API of HoldfastJobs: another group is changed here, and in the CRD of the operator's chart, which a test compares."""
JOB_API = f"{JOB_GROUP}/{JOB_VERSION}"
JOB_LABEL, JOB_INDEX_LABEL = f"{JOB_GROUP}/job", f"{JOB_GROUP}/index"
"""Labels of a job's pods: its name, and the node rank of the launcher."""
NODE_HEALTH_LABEL = "sagemaker.amazonaws.com/node-health-status"
"""Of a node of HyperPod (developer guide, "Health-related Kubernetes labels")."""

ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")

Object = dict[str, Any]


def kubernetes_trust(authority: str) -> ssl.SSLContext:
    """
    Return a context that trusts the authority of one cluster (PEM) and nothing else: chain, name and dates are checked.

    Python 3.13 and newer refuse by default what RFC 5280 does not allow. The authority of an EKS cluster that began
    with Kubernetes 1.16 or older has no key identifiers, and some have no key usage (aws/containers-roadmap#2638,
    awslabs/mcp#3791); neither decides which servers are trusted.

    Raises:
        ssl.SSLError, ValueError: an invalid certificate.
    """
    context = ssl.create_default_context(cadata=authority)
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    return context


class KubernetesError(Exception):
    """
    A refused request, or an API server that does not answer.

    Args:
        code: HTTP status; 0 without an answer.
    """

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code

    @classmethod
    def from_body(cls, code: int, body: bytes) -> "KubernetesError":
        """Take the message of a Status, or the start of any other body."""
        try:
            message = str(json.loads(body)["message"])
        except (ValueError, KeyError, TypeError):
            message = body[:300].decode(errors="replace").strip() or "no reason given"
        return cls(code, message)


class KubernetesClient:
    """
    One API server. Thread-safe: each request has its own connection. All methods raise KubernetesError.

    Args:
        endpoint: Such as https://127.0.0.1:6443.
        authority: Certificate of its authority, PEM.
        token: Bearer token. Default: none.
        certificate: Client certificate and its key, PEM. Default: none.

    Raises:
        ssl.SSLError, ValueError: a certificate is invalid.
    """

    def __init__(self, *, endpoint: str, authority: str, token: str = "", certificate: bytes = b"") -> None:
        self.endpoint = endpoint
        self.headers = {"Authorization": f"Bearer {token}"} if token else {}
        self.trust = kubernetes_trust(authority)
        if certificate:
            # OpenSSL reads client certificates from files only; this one is in memory.
            with os.fdopen(os.memfd_create("client"), "wb", buffering=0) as pair:
                pair.write(certificate)
                self.trust.load_cert_chain(f"/proc/self/fd/{pair.fileno()}")

    def get(self, path: str, **query: str) -> Object:
        return self._json("GET", _with_query(path, query.items()))

    def items(self, path: str, **query: str) -> list[Object]:
        found: list[Object] = self.get(path, **query)["items"]
        return found

    def text(self, path: str, **query: str) -> str:
        """Return an answer that is not JSON, such as a container's log."""
        return self._call("GET", _with_query(path, query.items())).decode(errors="replace")

    def is_ready(self, *, timeout_s: float = 2.0) -> bool:
        try:
            return self._call("GET", "/readyz", timeout_s=timeout_s) == b"ok"
        except KubernetesError:
            return False

    def create(self, path: str, body: Mapping[str, Any]) -> Object:
        return self._json("POST", path, body=body)

    def patch(self, path: str, body: Mapping[str, Any], *, kind: str = "merge-patch") -> Object:
        """Patch; ``kind``: merge-patch (RFC 7386) or strategic-merge-patch."""
        return self._json("PATCH", path, body=body, content=f"application/{kind}+json")

    def apply(self, path: str, body: Mapping[str, Any], *, manager: str = MANAGER, force: bool = False) -> Object:
        """
        Create the object, or set the given fields (server-side apply).

        Args:
            manager: Owner of the fields, in managedFields.
            force: Take fields from other managers. Default: KubernetesError 409.
        """
        where = _with_query(path, [("fieldManager", manager), ("force", str(force).lower())])
        return self._json("PATCH", where, body=body, content="application/apply-patch+yaml")

    def delete(self, path: str, *, uid: str = "", grace_s: Optional[int] = None) -> None:
        """
        Delete an object and its dependents; a missing object is no error.

        Args:
            uid: Delete the object of this UID only; KubernetesError 409 for another one of its name. Default: any.
            grace_s: Time for a pod to end; 0 removes it without its kubelet. Default: the pod's own.
        """
        body: Object = {"propagationPolicy": "Background"}
        if uid:
            body["preconditions"] = {"uid": uid}
        if grace_s is not None:
            body["gracePeriodSeconds"] = grace_s
        try:
            self._call("DELETE", path, body=body)
        except KubernetesError as error:
            if error.code != 404:
                raise

    def watch(self, path: str, *, is_over: Callable[[], bool] = lambda: False) -> Iterator[tuple[str, Object]]:
        """
        Yield SYNC with the list, then each ADDED, MODIFIED and DELETED object.

        Ends with the watch, after at most 240 s, or if ``is_over`` returns True between two events.
        """
        listed = self.get(path)
        yield "SYNC", listed
        query = {
            "watch": "1",
            "allowWatchBookmarks": "true",
            "resourceVersion": listed["metadata"]["resourceVersion"],
            "timeoutSeconds": str(WATCH_S),
        }
        with self._answer("GET", _with_query(path, query.items()), timeout_s=WATCH_S + TIMEOUT_S) as lines:
            for line in lines:
                event = self._parsed(line)
                if event["type"] == "ERROR" or is_over():
                    return
                if event["type"] != "BOOKMARK":
                    yield event["type"], event["object"]

    def _json(self, method: str, path: str, **request: Any) -> Object:
        return self._parsed(self._call(method, path, **request))

    def _parsed(self, text: bytes) -> Object:
        try:
            found: Object = json.loads(text)
        except ValueError as error:
            raise KubernetesError(0, f"the API server at {self.endpoint} answers no JSON: {error}") from None
        return found

    def _call(self, method: str, path: str, **request: Any) -> bytes:
        with self._answer(method, path, **request) as answer:
            return answer.read()

    @contextlib.contextmanager
    def _answer(
        self,
        method: str,
        path: str,
        *,
        body: Optional[Mapping[str, Any]] = None,
        content: str = "application/json",
        timeout_s: float = TIMEOUT_S,
    ) -> Iterator[http.client.HTTPResponse]:
        host = urlsplit(self.endpoint).netloc
        connection = http.client.HTTPSConnection(host, context=self.trust, timeout=timeout_s)
        headers = self.headers if body is None else {**self.headers, "Content-Type": content}
        try:
            connection.request(method, path, body=None if body is None else json.dumps(body), headers=headers)
            answer = connection.getresponse()
            if answer.status >= 400:
                raise KubernetesError.from_body(answer.status, answer.read())
            yield answer
        except (OSError, http.client.HTTPException) as error:
            raise KubernetesError(0, f"the API server at {self.endpoint} does not answer: {error}") from None
        finally:
            connection.close()


class ClusterAccess:
    """
    Clients of one API server, by default the pod's.

    Args:
        account: Folder with ``token``, ``ca.crt`` and ``namespace``. The kubelet renews the token.
    """

    def __init__(self, *, endpoint: str = "", account: Path = ACCOUNT) -> None:
        host, port = os.environ.get("KUBERNETES_SERVICE_HOST", ""), os.environ.get("KUBERNETES_SERVICE_PORT", "443")
        self._endpoint = endpoint or (f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}")
        self._account = account
        self._token = ""
        self._client: Optional[KubernetesClient] = None

    @property
    def namespace(self) -> str:
        return (self._account / "namespace").read_text("ascii").strip()

    def client(self) -> KubernetesClient:
        """Return a client with the current token. Raises: OSError: no service account is mounted."""
        token = (self._account / "token").read_text("ascii").strip()
        if self._client is None or token != self._token:
            authority = (self._account / "ca.crt").read_text("ascii")
            self._client = KubernetesClient(endpoint=self._endpoint, authority=authority, token=token)
            self._token = token
        return self._client


def _with_query(path: str, query: Iterable[tuple[str, str]]) -> str:
    text = urlencode(list(query))
    return f"{path}{'&' if '?' in path else '?'}{text}" if text else path
