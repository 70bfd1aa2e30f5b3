"""
Instance metadata (IMDSv2) for all nodes, from one thread, by the caller's address.

Source: EC2 user guide, "Instance metadata categories"; other paths are not found. A token is required, as with
HttpTokens=required, the default of new instances. Credentials are a session of the instance's role, for all users of
the instance.
"""

import logging
import secrets
import socket
import threading
import time
from collections.abc import Callable, Mapping

from holdfast.localcloud.supervision import HttpService, RequestHandler

ADDRESS = "169.254.169.254"
PORT = 80
LONGEST_TTL_S = 21600
_TTL_HEADER, _TOKEN_HEADER = "X-aws-ec2-metadata-token-ttl-seconds", "X-aws-ec2-metadata-token"
_MOST_TOKENS = 4096
_ROOT = "/latest/meta-data/"

_log = logging.getLogger(__name__)

Item = str | Callable[[], str]
"""Value of a path, or its function."""
Lookup = Callable[[str], Mapping[str, Item] | None]
"""From an address to the paths below meta-data/ and what they hold; None for an unknown caller."""


class Metadata(HttpService):
    def __init__(self, *, listener: socket.socket, lookup: Lookup) -> None:
        class Handler(_Handler):
            pass

        Handler.tokens, Handler.lookup = _Tokens(), staticmethod(lookup)
        super().__init__(name="metadata", listener=listener, handler=Handler)


class _Tokens:
    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._known: dict[str, tuple[str, float]] = {}

    def new(self, *, caller: str, ttl_s: int) -> str:
        token = secrets.token_urlsafe(40)
        now = time.monotonic()
        with self._lock:
            if len(self._known) >= _MOST_TOKENS:
                self._known = {name: one for name, one in self._known.items() if one[1] > now}
            while len(self._known) >= _MOST_TOKENS:
                self._known.pop(next(iter(self._known)))
            self._known[token] = (caller, now + ttl_s)
        return token

    def holds(self, token: str, *, caller: str) -> bool:
        with self._lock:
            owner, until = self._known.get(token, ("", 0.0))
        return owner == caller and time.monotonic() < until


class _Handler(RequestHandler):
    server_version = "EC2ws"
    tokens: _Tokens
    lookup: Lookup

    def do_PUT(self) -> None:  # noqa: N802  the library's name
        if self.path != "/latest/api/token":
            self._answer(404)
            return
        ttl = self.headers.get(_TTL_HEADER, "")
        if (
            not (ttl.isascii() and ttl.isdigit() and 1 <= int(ttl) <= LONGEST_TTL_S)
            or "X-Forwarded-For" in self.headers
        ):
            self._answer(403 if "X-Forwarded-For" in self.headers else 400)
            return
        token = self.tokens.new(caller=self.client_address[0], ttl_s=int(ttl))
        self._answer(200, token, **{_TTL_HEADER: ttl})

    def do_GET(self) -> None:  # noqa: N802  the library's name
        caller = self.client_address[0]
        if not self.tokens.holds(self.headers.get(_TOKEN_HEADER, ""), caller=caller):
            self._answer(401)
            return
        found = type(self).lookup(caller)
        if found is None or not (self.path + "/").startswith(_ROOT):
            self._answer(404)
            return
        try:
            body = listing(found, self.path[len(_ROOT) :])
        except Exception as error:  # noqa: BLE001 - a caller waits for an answer, and asks again
            _log.warning("instance metadata of %s: %s", caller, error)
            self._answer(503)
            return
        self._answer(404 if body is None else 200, body or "")

    def _answer(self, status: int, body: str = "", **headers: str) -> None:
        self.send(status, body.encode(), kind="text/plain", headers=headers)


def listing(items: Mapping[str, Item], path: str) -> str | None:
    """Return an item's value, the names below a folder, or None."""
    held = items.get(path)
    if held is not None:
        return held if isinstance(held, str) else held()
    folder = path.rstrip("/") + "/" if path.rstrip("/") else ""
    below = {name[len(folder) :] for name in items if name.startswith(folder)}
    names = sorted({name.split("/")[0] + ("/" if "/" in name else "") for name in below if name})
    return "\n".join(names) if names else None
