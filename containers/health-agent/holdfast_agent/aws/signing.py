"""
Signature version 4 for JSON bodies, without a query or a path that needs encoding. Pure.

Source: IAM user guide, "Create a signed AWS API request". A test compares it with botocore's.
"""

import hashlib
import hmac
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import urlsplit

_ALGORITHM = "AWS4-HMAC-SHA256"


@dataclass(frozen=True)
class Request:
    method: str
    url: str
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)


def signed_headers(
    request: Request, *, access_key: str, secret_key: str, token: str, region: str, service: str, stamp: str
) -> "dict[str, str]":
    """
    Return all headers, with the signature.

    Args:
        token: Session token; empty for a user's keys.
        stamp: UTC, such as ``20261123T151500Z``.
    """
    parts = urlsplit(request.url)
    headers = {**request.headers, "Host": parts.netloc, "X-Amz-Date": stamp}
    if token:
        headers["X-Amz-Security-Token"] = token
    lower = sorted((name.lower(), " ".join(value.split())) for name, value in headers.items())
    names = ";".join(name for name, _ in lower)
    canonical = "\n".join(
        [
            request.method,
            parts.path or "/",
            parts.query,
            "".join(f"{name}:{value}\n" for name, value in lower),
            names,
            hashlib.sha256(request.body).hexdigest(),
        ]
    )
    scope = f"{stamp[:8]}/{region}/{service}/aws4_request"
    to_sign = "\n".join([_ALGORITHM, stamp, scope, hashlib.sha256(canonical.encode()).hexdigest()])
    key = f"AWS4{secret_key}".encode()
    for part in scope.split("/"):
        key = hmac.new(key, part.encode(), hashlib.sha256).digest()
    signature = hmac.new(key, to_sign.encode(), hashlib.sha256).hexdigest()
    authorization = f"{_ALGORITHM} Credential={access_key}/{scope}, SignedHeaders={names}, Signature={signature}"
    return {**headers, "Authorization": authorization}
