"""
Signature Version 4 in the standard library, for callers that cannot wait for botocore to be imported.

Source: AWS general reference, "Create a signed AWS API request". For requests without a path that would need encoding.
"""

import datetime
import hashlib
import hmac
from collections.abc import Mapping
from urllib.parse import parse_qsl, quote, urlsplit

from holdfast.localcloud.home.keys import Keys


def signed_headers(
    keys: Keys,
    *,
    method: str,
    url: str,
    region: str,
    service: str,
    body: bytes = b"",
    now: datetime.datetime | None = None,
) -> Mapping[str, str]:
    """Headers that sign a request to ``url``: to be sent with it, beside others that are not signed."""
    parts = urlsplit(url)
    timestamp = (now or datetime.datetime.now(datetime.UTC)).strftime("%Y%m%dT%H%M%SZ")
    headers = {"host": parts.netloc, "x-amz-date": timestamp}
    if keys.session_token:
        headers["x-amz-security-token"] = keys.session_token
    names = ";".join(sorted(headers))
    given = parse_qsl(parts.query, keep_blank_values=True)
    pairs = sorted((quote(name, safe="-_.~"), quote(value, safe="-_.~")) for name, value in given)
    canonical = [
        method,
        parts.path or "/",
        "&".join(f"{name}={value}" for name, value in pairs),
        *(f"{name}:{headers[name]}" for name in sorted(headers)),
        "",
        names,
        hashlib.sha256(body).hexdigest(),
    ]
    scope = f"{timestamp[:8]}/{region}/{service}/aws4_request"
    digest = hashlib.sha256("\n".join(canonical).encode()).hexdigest()
    key = f"AWS4{keys.secret_access_key}".encode()
    for part in scope.split("/"):
        key = hmac.digest(key, part.encode(), "sha256")
    signature = hmac.new(key, f"AWS4-HMAC-SHA256\n{timestamp}\n{scope}\n{digest}".encode(), "sha256").hexdigest()
    credential = f"{keys.access_key_id}/{scope}"
    reported = f"AWS4-HMAC-SHA256 Credential={credential}, SignedHeaders={names}, Signature={signature}"
    return {**headers, "Authorization": reported}
