"""
Requests to a Kubernetes API server, plain JSON in and out, and watches that follow what changes.

There is no model of any object here: what its fields mean is for the caller.
"""

import http.client
import json
import tempfile
import urllib.parse
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from holdfast_common import kubernetes_trust

TIMEOUT_S = 15.0
WATCH_S = 240
"""A watch ends by itself after this long, and is begun again."""

_PATCHES = {"merge": "application/merge-patch+json", "strategic": "application/strategic-merge-patch+json"}

Object = dict[str, Any]


class ApiError(Exception):
    """
    The API server said no.

    Args:
        code: HTTP status.
        message: What the server says of it.
    """

    def __init__(self, code: int, message: str) -> None:
        super().__init__(f"{message} ({code})")
        self.code = code


class Api:
    """
    One API server. Thread-safe: each request has a connection of its own.

    Args:
        host, port: Where it answers.
        authority: Certificate of its authority, PEM.
        certificate, key: Of the client, PEM.
    """

    def __init__(self, *, host: str, port: int, authority: bytes, certificate: bytes, key: bytes) -> None:
        self._host, self._port = host, port
        self._context = kubernetes_trust(authority.decode())
        with tempfile.TemporaryDirectory() as folder:  # OpenSSL takes them from files alone
            pair = Path(folder, "pair.pem")
            pair.touch(mode=0o600)
            pair.write_bytes(certificate + key)
            self._context.load_cert_chain(pair)

    def is_ready(self, *, timeout_s: float = 2.0) -> bool:
        """Whether it says so itself."""
        try:
            return self._call("GET", "/readyz", timeout_s=timeout_s) == b"ok"
        except (OSError, http.client.HTTPException, ApiError):
            return False

    def get(self, path: str) -> Object:
        """An object or a list. ApiError: there is none, or it is not to be had."""
        answer: Object = json.loads(self._call("GET", path))
        return answer

    def create(self, path: str, body: Mapping[str, Any]) -> Object:
        answer: Object = json.loads(self._call("POST", path, body=body))
        return answer

    def patch(self, path: str, body: Mapping[str, Any], *, kind: str = "merge") -> Object:
        """``kind``: merge (RFC 7386) or strategic. Default: merge."""
        answer: Object = json.loads(self._call("PATCH", path, body=body, content=_PATCHES[kind]))
        return answer

    def apply(self, path: str, body: Mapping[str, Any], *, manager: str, force: bool = True) -> Object:
        """
        Server-side apply: the object is made, or its fields are set.

        Args:
            force: Whoever had set a field otherwise. Default: True. False: ApiError 409 then.
        """
        where = f"{path}?fieldManager={urllib.parse.quote(manager)}&force={str(force).lower()}"
        answer: Object = json.loads(self._call("PATCH", where, body=body, content="application/apply-patch+yaml"))
        return answer

    def delete(self, path: str) -> None:
        """Delete; what is not there is deleted already."""
        try:
            self._call("DELETE", path)
        except ApiError as error:
            if error.code != 404:
                raise

    def follow(self, path: str, *, is_over: Callable[[], bool] = lambda: False) -> Iterator[tuple[str, Object]]:
        """
        What is there now, as SYNC with the list, and then each ADDED, MODIFIED and DELETED object.

        Ends when the server ends the watch or ``is_over`` says so between two events; the caller begins again.

        Raises:
            OSError, http.client.HTTPException, ApiError: the server does not answer as expected.
        """
        listed = self.get(path)
        yield "SYNC", listed
        version = listed["metadata"]["resourceVersion"]
        query = f"watch=1&allowWatchBookmarks=true&resourceVersion={version}&timeoutSeconds={WATCH_S}"
        connection = self._connect(timeout_s=WATCH_S + TIMEOUT_S)
        try:
            connection.request("GET", f"{path}{'&' if '?' in path else '?'}{query}")
            answer = connection.getresponse()
            if answer.status != 200:
                raise ApiError(answer.status, _message(answer.read()))
            for line in answer:
                event = json.loads(line)
                if event["type"] == "ERROR" or is_over():
                    return
                if event["type"] != "BOOKMARK":
                    yield event["type"], event["object"]
        finally:
            connection.close()

    def _connect(self, *, timeout_s: float) -> http.client.HTTPSConnection:
        return http.client.HTTPSConnection(self._host, self._port, context=self._context, timeout=timeout_s)

    def _call(
        self,
        method: str,
        path: str,
        *,
        body: Mapping[str, Any] | None = None,
        content: str = "application/json",
        timeout_s: float = TIMEOUT_S,
    ) -> bytes:
        connection = self._connect(timeout_s=timeout_s)
        try:
            headers = {"Content-Type": content} if body is not None else {}
            connection.request(method, path, body=None if body is None else json.dumps(body), headers=headers)
            answer = connection.getresponse()
            said = answer.read()
        finally:
            connection.close()
        if answer.status >= 400:
            raise ApiError(answer.status, _message(said))
        return said


def _message(said: bytes) -> str:
    """Of a Status, as the API server answers what it refuses."""
    try:
        return str(json.loads(said)["message"])
    except (ValueError, KeyError, TypeError):
        return said[:300].decode(errors="replace").strip() or "no reason given"
