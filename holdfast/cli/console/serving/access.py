"""
Who may read: callers with the secret of this console, from this machine, whose page is this one. Pure.

A web page cannot change Origin and Sec-Fetch-Site (Fetch standard), and a page whose name resolves to this machine
has that name in Host. The secret is part of the path: a cookie of 127.0.0.1 would be sent to all of its ports.
"""

import hmac
from collections.abc import Mapping
from dataclasses import dataclass

HOSTS = ("127.0.0.1", "localhost")
METHODS = ("GET", "HEAD")
SITES = ("none", "same-origin")


@dataclass(frozen=True, kw_only=True)
class Refusal:
    status: int
    text: str


@dataclass(frozen=True, kw_only=True)
class Access:
    port: int
    secret: str

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/{self.secret}/"

    def admit(self, method: str, path: str, headers: Mapping[str, str]) -> "str | Refusal":
        """Return the path below the secret, or the refusal. Names of headers are in lower case."""
        hosts = [f"{name}:{self.port}" for name in HOSTS]
        host, origin = headers.get("host", ""), headers.get("origin")
        if host not in hosts:
            return Refusal(status=403, text=f"got Host {host[:80]!r}; allowed: {' or '.join(hosts)}")
        if origin is not None and origin != f"http://{host}":
            return Refusal(status=403, text=f"got a request of the web page {origin[:80]!r}; allowed: http://{host}")
        if (site := headers.get("sec-fetch-site", "none")) not in SITES:
            return Refusal(status=403, text=f"got Sec-Fetch-Site {site[:20]!r}; allowed: {', '.join(SITES)}")
        secret, slash, rest = path.removeprefix("/").partition("/")
        if not slash or not hmac.compare_digest(secret.encode("utf-8", "surrogatepass"), self.secret.encode()):
            return Refusal(status=403, text="got no secret; open the address that holdfast console printed")
        if method not in METHODS:
            return Refusal(status=405, text=f"got {method[:20]}; allowed: {', '.join(METHODS)}: this page is read-only")
        return rest
