"""
Questions to the API server of a cluster, with a token: plain JSON in and out.

What is in an object, and who the token is of, is left to the callers.
"""

import http.client
import json
import ssl
import urllib.parse
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from holdfast_common import kubernetes_trust

TIMEOUT_S = 15.0
MANAGER = "holdfast"
"""Who is said to have set the fields that are applied."""

Object = dict[str, Any]


class KubernetesError(Exception):
    """The API server refused, ``code`` is its HTTP status; or it cannot be reached, and ``code`` is 0."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


@dataclass(frozen=True, kw_only=True)
class Client:
    """One API server as one user sees it."""

    endpoint: str
    """As EKS tells it, https://..."""
    authority: str
    """Certificate of its authority, PEM."""
    token: str = field(repr=False)

    def get(self, path: str, **query: str) -> Object:
        """An object or a list. Raises: KubernetesError."""
        answer: Object = json.loads(self._call("GET", with_query(path, query.items())))
        return answer

    def items(self, path: str, **query: str) -> list[Object]:
        """The items of a list. Raises: KubernetesError."""
        found: list[Object] = self.get(path, **query)["items"]
        return found

    def text(self, path: str, **query: str) -> str:
        """What is no JSON, such as the log of a container. Raises: KubernetesError."""
        return self._call("GET", with_query(path, query.items())).decode(errors="replace")

    def apply(self, path: str, body: Mapping[str, Any]) -> Object:
        """
        Server-side apply: the object is made, or the fields that are given are set.

        Raises:
            KubernetesError: also 409, where somebody else has set one of them otherwise.
        """
        where = with_query(path, [("fieldManager", MANAGER)])
        answer: Object = json.loads(self._call("PATCH", where, body=body, content="application/apply-patch+yaml"))
        return answer

    def delete(self, path: str) -> None:
        """Delete an object and what it owns; what is not there is deleted already. Raises: KubernetesError."""
        try:
            self._call("DELETE", path, body={"propagationPolicy": "Background"})
        except KubernetesError as error:
            if error.code != 404:
                raise

    @cached_property
    def trust(self) -> ssl.SSLContext:
        """The authority of the cluster and no other."""
        return kubernetes_trust(self.authority)

    def _call(
        self, method: str, path: str, *, body: Mapping[str, Any] | None = None, content: str = "application/json"
    ) -> bytes:
        host = urllib.parse.urlsplit(self.endpoint).netloc
        connection = http.client.HTTPSConnection(host, context=self.trust, timeout=TIMEOUT_S)
        headers = {"Authorization": f"Bearer {self.token}"}
        if body is not None:
            headers["Content-Type"] = content
        try:
            connection.request(method, path, body=None if body is None else json.dumps(body), headers=headers)
            answer = connection.getresponse()
            said = answer.read()
        except (OSError, http.client.HTTPException) as error:
            raise KubernetesError(0, f"the API server at {self.endpoint} does not answer: {error}") from None
        finally:
            connection.close()
        if answer.status >= 400:
            raise KubernetesError(answer.status, message_of(said))
        return said


def with_query(path: str, query: Iterable[tuple[str, str]]) -> str:
    """A path, and what is asked of it."""
    asked = urllib.parse.urlencode(list(query))
    return f"{path}?{asked}" if asked else path


def message_of(said: bytes) -> str:
    """Of a Status, as the API server answers what it refuses."""
    try:
        return str(json.loads(said)["message"])
    except (ValueError, KeyError, TypeError):
        return said[:300].decode(errors="replace").strip() or "no reason given"
