"""The Kubernetes API by plain HTTPS: what is asked and what is answered, with nothing in between that knows better."""

import base64
import json
import ssl
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

TIMEOUT_S = 30
TOKEN_LIFE_S = 600
"""A token of `aws eks get-token` is good for 14 minutes."""

MERGE = "application/merge-patch+json"
JSON_PATCH = "application/json-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
APPLY = "application/apply-patch+yaml"


class Refused(Exception):  # noqa: N818 - it is what the server says
    """The API server answered with an error; `code` is HTTP's, `status` the Status object."""

    def __init__(self, code: int, status: Any) -> None:
        super().__init__(f"{code} {status.get('reason', '')}: {status.get('message', '')}")
        self.code, self.status = code, status
        self.reason = status.get("reason", "")


@dataclass(kw_only=True)
class Api:
    """One API server and one identity. Paths are those of the API, such as `/api/v1/nodes`."""

    url: str
    authority: str
    """The certificate authority, PEM in base64 as in a kubeconfig."""
    token: Callable[[], str]
    _held: tuple[str, float] = field(default=("", 0.0), init=False)

    def get(self, path: str, **query: str) -> Any:
        return self.call("GET", path, query=query)

    def find(self, path: str) -> Any:
        """The object, or None where there is none."""
        try:
            return self.get(path)
        except Refused as error:
            if error.code == 404:
                return None
            raise

    def post(self, path: str, body: Any, **query: str) -> Any:
        return self.call("POST", path, body=body, query=query)

    def put(self, path: str, body: Any, **query: str) -> Any:
        return self.call("PUT", path, body=body, query=query)

    def patch(self, path: str, body: Any, *, kind: str = MERGE, **query: str) -> Any:
        return self.call("PATCH", path, body=body, query=query, kind=kind)

    def delete(self, path: str, body: Any = None) -> Any:
        return self.call("DELETE", path, body=body)

    def call(
        self, method: str, path: str, *, body: Any = None, query: Mapping[str, str] | None = None, kind: str = ""
    ) -> Any:
        """The answer, read. Raises: Refused."""
        with self._open(method, path, body=body, query=query or {}, kind=kind) as answer:
            return _read(answer)

    def table(self, path: str) -> Any:
        """What `kubectl get` prints: columns and rows made by the server."""
        accept = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"
        with self._open("GET", path, body=None, query={}, kind="", accept=accept) as answer:
            return _read(answer)

    def text(self, path: str, **query: str) -> str:
        """An answer that is no JSON, such as a log."""
        with self._open("GET", path, body=None, query=query, kind="") as answer:
            return str(answer.read().decode())

    def watch(self, path: str, *, within_s: float = TIMEOUT_S, **query: str) -> Iterator[Any]:
        """Events, as they come, until the server ends the watch after `within_s`."""
        asked = {**query, "watch": "1", "timeoutSeconds": str(int(within_s))}
        with self._open("GET", path, body=None, query=asked, kind="", timeout_s=within_s + 10) as answer:
            for line in answer:
                yield json.loads(line)

    def _open(
        self,
        method: str,
        path: str,
        *,
        body: Any,
        query: Mapping[str, str],
        kind: str,
        accept: str = "application/json, */*",
        timeout_s: float = TIMEOUT_S,
    ) -> Any:
        request = urllib.request.Request(
            f"{self.url}{path}{'?' if query else ''}{urllib.parse.urlencode(query)}",
            method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers={
                "Authorization": f"Bearer {self._bearer()}",
                "Accept": accept,
                "Content-Type": kind or "application/json",
            },
        )
        try:
            return urllib.request.urlopen(request, context=self._context(), timeout=timeout_s)
        except urllib.error.HTTPError as error:
            with error:
                raise Refused(error.code, _read(error)) from None

    def _bearer(self) -> str:
        token, since = self._held
        if not token or time.monotonic() - since > TOKEN_LIFE_S:
            token = self.token()
            self._held = (token, time.monotonic())
        return token

    def _context(self) -> ssl.SSLContext:
        return ssl.create_default_context(cadata=base64.b64decode(self.authority).decode())


def _read(answer: Any) -> Any:
    data = answer.read()
    try:
        return json.loads(data)
    except ValueError:
        return {"message": data.decode(errors="replace")}
