"""
Tokens of ``aws eks get-token``: decode, validate before STS is asked. Pure.

A token is ``k8s-aws-v1.`` and the base64 of a presigned GetCallerIdentity URL, validated as EKS does:
kubernetes-sigs/aws-iam-authenticator, pkg/token/token.go at 81b1dab (2026-07-14), ``Verify``. Different here: the host
is the embedded AWS's, and the scheme may be http.
"""

import base64
import binascii
import datetime
from collections.abc import Collection
from dataclasses import dataclass, field
from urllib.parse import parse_qsl, urlsplit

PREFIX = "k8s-aws-v1."
MOST_BYTES = 4096
LASTS = datetime.timedelta(minutes=15)
EARLY = datetime.timedelta(minutes=15)
"""STS refuses what is signed further in the future (IAM user guide, "Troubleshoot Signature Version 4")."""
MOST_EXPIRES_S = 900
CLUSTER_HEADER = "x-k8s-aws-id"
ALLOWED = frozenset(
    [
        "action",
        "version",
        "x-amz-algorithm",
        "x-amz-credential",
        "x-amz-date",
        "x-amz-expires",
        "x-amz-security-token",
        "x-amz-signature",
        "x-amz-signedheaders",
    ]
)


class TokenError(Exception):
    """An invalid token; the message has the reason."""


@dataclass(frozen=True, kw_only=True)
class PresignedRequest:
    host: str
    """As it was signed, with its port."""
    target: str = field(repr=False)
    """Path and query, byte by byte as they were signed."""
    access_key_id: str
    expires_at: datetime.datetime


def presigned_request(token: str, *, hosts: Collection[str], now: datetime.datetime) -> PresignedRequest:
    """Return the request in a token; ``hosts``: the embedded AWS's, HOST:PORT. Raises: TokenError."""
    url = _decoded(token)
    try:
        parts = urlsplit(url)
    except ValueError:
        raise TokenError("the token is not a URL") from None
    if parts.scheme not in ("http", "https"):
        raise TokenError(f"unexpected scheme {parts.scheme!r} in pre-signed URL")
    if parts.netloc not in hosts:
        raise TokenError(f"unexpected hostname {parts.netloc[:80]!r} in pre-signed URL")
    if parts.path != "/" or parts.fragment:
        raise TokenError("unexpected path in pre-signed URL")
    query = _query(parts.query)
    if query.get("action") != "GetCallerIdentity":
        raise TokenError("unexpected action parameter in pre-signed URL")
    if CLUSTER_HEADER not in query.get("x-amz-signedheaders", "").lower().split(";"):
        raise TokenError(f"client did not sign the {CLUSTER_HEADER} header in the pre-signed URL")
    expires = query.get("x-amz-expires", "")
    if not (expires.isascii() and expires.isdigit() and len(expires) < 4 and int(expires) <= MOST_EXPIRES_S):
        raise TokenError(f"invalid X-Amz-Expires parameter in pre-signed URL: {expires[:20]!r}")
    return PresignedRequest(
        host=parts.netloc,
        target=f"/?{parts.query}",
        access_key_id=query.get("x-amz-credential", "").split("/")[0],
        expires_at=_expiry(query.get("x-amz-date", ""), now),
    )


def _decoded(token: str) -> str:
    if len(token) > MOST_BYTES:
        raise TokenError("token is too large")
    if not token.startswith(PREFIX):
        raise TokenError(f'token is missing expected "{PREFIX}" prefix')
    encoded = token.removeprefix(PREFIX)
    if "=" in encoded:
        raise TokenError("the token is not base64 without padding")
    try:
        plain = base64.b64decode(encoded + "=" * (-len(encoded) % 4), altchars=b"-_", validate=True).decode("ascii")
    except (binascii.Error, ValueError):
        raise TokenError("the token is not base64 of a URL") from None
    if not plain.isprintable() or " " in plain:
        raise TokenError("the token is not base64 of a URL")
    return plain


def _query(text: str) -> dict[str, str]:
    """Return parameters by their names in lower case; each may occur once."""
    try:
        pairs = parse_qsl(text, keep_blank_values=True, strict_parsing=True, max_num_fields=2 * len(ALLOWED))
    except ValueError:
        raise TokenError("malformed query parameter") from None
    found: dict[str, str] = {}
    for name, value in pairs:
        if name.lower() not in ALLOWED:
            raise TokenError(f"non-whitelisted query parameter {name[:80]!r}")
        if name.lower() in found:
            raise TokenError(f"duplicate query parameter found: {name!r}")
        found[name.lower()] = value
    return found


def _expiry(date: str, now: datetime.datetime) -> datetime.datetime:
    if not date:
        raise TokenError("X-Amz-Date parameter must be present in pre-signed URL")
    try:
        signed = datetime.datetime.strptime(date, "%Y%m%dT%H%M%SZ").replace(tzinfo=datetime.UTC)
    except ValueError:
        raise TokenError(f"error parsing X-Amz-Date parameter {date[:40]!r}") from None
    if now > signed + LASTS:
        raise TokenError(f"X-Amz-Date parameter is expired (15 minute expiration) {date}")
    if now < signed - EARLY:
        raise TokenError(f"X-Amz-Date parameter is in the future: {date}")
    return signed + LASTS
