"""
Request signatures: parsing and verification.

AWS Signature Version 4, in header or query (AWS general reference, "Create a signed AWS API request"), and S3's older
query form (S3 developer guide, RESTAuthentication) of boto3's presigned URLs. Verified with botocore's signers.
"""

import calendar
import datetime
import hashlib
import hmac
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qs, urlsplit

from botocore.auth import HmacV1QueryAuth, S3SigV4Auth, SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.compat import HTTPHeaders
from botocore.credentials import Credentials
from werkzeug.datastructures import Headers

from holdfast.localcloud.aws.common import ServiceError
from holdfast.localcloud.home import Keys

ALGORITHM = "AWS4-HMAC-SHA256"
SKEW_S = 900
LONGEST_PRESIGNED_S = 7 * 24 * 3600
OF_STS_S = 900
"""Validity of a presigned request to STS, whatever its X-Amz-Expires (kubernetes-sigs/aws-iam-authenticator,
pkg/token/token.go at 81b1dab, 2026-07-14). ``aws eks get-token`` sets 60 s; its token lasts 14 minutes."""
NOT_HASHED = ("UNSIGNED-PAYLOAD", "STREAMING-")
QUERY_SCOPE = re.compile(
    r"(?P<key>[^/]+)/(?P<date>\d{8})/(?P<region>[a-z0-9-]+)/(?P<service>[A-Za-z0-9.-]+)/aws4_request"
)


@dataclass(frozen=True, kw_only=True)
class RequestSignature:
    key_id: str
    service: str
    signature: str
    region: str = ""
    timestamp: str = ""
    headers: tuple[str, ...] = ()
    token: str = ""
    expires: int | None = None
    """Of presigned URLs: seconds of validity, or with the older signature the Unix time when it ends."""
    old: bool = False

    def as_header(self) -> str:
        date = self.timestamp[:8] or "20000101"
        scope = f"{self.key_id}/{date}/{self.region or 'us-east-1'}/{self.service}/aws4_request"
        return f"{ALGORITHM} Credential={scope}, SignedHeaders={';'.join(self.headers)}, Signature={self.signature}"


def signed(headers: Headers, query: Mapping[str, str]) -> RequestSignature:
    """Parse the signature of a request. Raise ServiceError if it is missing or incomplete."""
    if headers.get("Authorization"):
        return _in_header(headers)
    if "X-Amz-Signature" in query:
        return _in_query(query)
    if {"AWSAccessKeyId", "Signature", "Expires"} <= query.keys():
        return RequestSignature(
            key_id=query["AWSAccessKeyId"],
            service="s3",
            signature=query["Signature"],
            token=query.get("x-amz-security-token", ""),
            expires=_number(query["Expires"], "Expires"),
            old=True,
        )
    raise ServiceError("MissingAuthenticationToken", "Missing Authentication Token", 403)


def verify(environ: Mapping[str, Any], what: RequestSignature, keys: Keys, body: bytes) -> None:
    """Verify signature, age and content. Raise ServiceError."""
    if what.token != keys.session_token:
        raise ServiceError("InvalidClientTokenId", "The security token included in the request is invalid.", 403)
    if what.old:
        _in_time_old(what)
        expected = _old_signature(environ, what, keys)
    else:
        _in_time(what)
        expected = _signature(environ, what, keys, _payload(environ, what, body))
    if not hmac.compare_digest(expected.encode(), what.signature.encode("utf-8", "replace")):
        raise ServiceError(
            "SignatureDoesNotMatch",
            "The request signature we calculated does not match the signature you provided. Check your AWS Secret "
            "Access Key and signing method. Consult the service documentation for details.",
            403,
        )


def _in_header(headers: Headers) -> RequestSignature:
    algorithm, _, rest = headers["Authorization"].partition(" ")
    if algorithm != ALGORITHM:
        raise _incomplete(f"Authorization header requires '{ALGORITHM}', given: {algorithm[:40]!r}.")
    parts = dict(part.strip().partition("=")[::2] for part in rest.split(","))
    for name in ("Credential", "Signature", "SignedHeaders"):
        if not parts.get(name):
            raise _incomplete(f"Authorization header requires '{name}' parameter.")
    timestamp = headers.get("X-Amz-Date") or _timestamp_of(headers.get("Date", ""))
    if not timestamp:
        raise _incomplete("Authorization header requires existence of either a 'X-Amz-Date' or a 'Date' header.")
    scope = _scope(parts["Credential"])
    return RequestSignature(
        key_id=scope["key"],
        service=scope["service"].lower(),
        signature=parts["Signature"],
        region=scope["region"],
        timestamp=timestamp,
        headers=_signed_headers(parts["SignedHeaders"]),
        token=headers.get("X-Amz-Security-Token", ""),
    )


def _in_query(query: Mapping[str, str]) -> RequestSignature:
    for name in ("X-Amz-Credential", "X-Amz-Date", "X-Amz-SignedHeaders", "X-Amz-Expires"):
        if not query.get(name):
            raise _incomplete(f"AWS query-string parameters must include '{name}'.")
    if query.get("X-Amz-Algorithm") != ALGORITHM:
        raise _incomplete(f"X-Amz-Algorithm must be {ALGORITHM}.")
    scope = _scope(query["X-Amz-Credential"])
    return RequestSignature(
        key_id=scope["key"],
        service=scope["service"].lower(),
        signature=query["X-Amz-Signature"],
        region=scope["region"],
        timestamp=query["X-Amz-Date"],
        headers=_signed_headers(query["X-Amz-SignedHeaders"]),
        token=query.get("X-Amz-Security-Token", ""),
        expires=_number(query["X-Amz-Expires"], "X-Amz-Expires"),
    )


def _scope(credential: str) -> Mapping[str, str]:
    found = QUERY_SCOPE.fullmatch(credential)
    if found is None:
        raise _incomplete(
            "Credential must have exactly 5 slash-delimited elements, e.g. keyid/date/region/service/term, "
            f"got '{credential[:100]}'"
        )
    return found.groupdict()


def _signed_headers(text: str) -> tuple[str, ...]:
    names = tuple(name.lower() for name in text.split(";"))
    if "host" not in names:
        raise ServiceError("SignatureDoesNotMatch", "'Host' must be a 'SignedHeader' in the AWS Authorization.", 403)
    return names


def _number(text: str, name: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 13):
        raise ServiceError("AuthorizationQueryParametersError", f"{name} should be a number", 400)
    return int(text)


def _incomplete(message: str) -> ServiceError:
    return ServiceError("IncompleteSignature", message, 400)


def _timestamp_of(date: str) -> str:
    try:
        parsed = datetime.datetime.strptime(date, "%a, %d %b %Y %H:%M:%S GMT")
    except ValueError:
        return ""
    return parsed.strftime("%Y%m%dT%H%M%SZ")


def _in_time(what: RequestSignature) -> None:
    try:
        made = calendar.timegm(time.strptime(what.timestamp, "%Y%m%dT%H%M%SZ"))
    except (ValueError, OverflowError):
        raise _incomplete(f"Date must be in ISO-8601 'basic format'. Got '{what.timestamp[:40]}'.") from None
    now = time.time()
    if what.expires is not None:
        if not 1 <= what.expires <= LONGEST_PRESIGNED_S:
            message = f"X-Amz-Expires must be from 1 to {LONGEST_PRESIGNED_S}"
            raise ServiceError("AuthorizationQueryParametersError", message, 400)
        lasts_s = OF_STS_S if what.service == "sts" else what.expires
        if not made - SKEW_S <= now <= made + lasts_s:
            raise ServiceError("AccessDenied", "Request has expired", 403)
    elif abs(now - made) > SKEW_S:
        raise ServiceError(
            "SignatureDoesNotMatch", f"Signature expired: {what.timestamp} is too far from the current time", 403
        )


def _in_time_old(what: RequestSignature) -> None:
    if what.expires is None or what.expires < time.time():
        raise ServiceError("AccessDenied", "Request has expired", 403)


def _payload(environ: Mapping[str, Any], what: RequestSignature, body: bytes) -> str:
    reported = str(environ.get("HTTP_X_AMZ_CONTENT_SHA256", ""))
    if not reported and what.expires is not None and what.service == "s3":
        return "UNSIGNED-PAYLOAD"
    if reported.startswith(NOT_HASHED):
        return reported
    digest = hashlib.sha256(body).hexdigest()
    if reported and reported != digest:
        message = "The provided 'x-amz-content-sha256' header does not match what was computed."
        raise ServiceError("XAmzContentSHA256Mismatch", message, 400)
    return digest


def _signature(environ: Mapping[str, Any], what: RequestSignature, keys: Keys, payload: str) -> str:
    signer = (S3SigV4Auth if what.service == "s3" else SigV4Auth)(_credentials(keys), what.service, what.region)
    headers = HTTPHeaders()
    for name in what.headers:
        headers[name] = _header(environ, name)
    url = f"http://{environ.get('HTTP_HOST', '')}{environ['RAW_URI']}"
    if what.expires is not None:
        parts = urlsplit(url)
        query = "&".join(pair for pair in parts.query.split("&") if not pair.startswith("X-Amz-Signature="))
        url = parts._replace(query=query).geturl()
    request = AWSRequest(method=environ["REQUEST_METHOD"], url=url, headers=headers)
    request.context["timestamp"] = what.timestamp
    # The signer takes a digest from this header before it computes one.
    signer.headers_to_sign = lambda _: headers
    request.headers = HTTPHeaders()
    request.headers["X-Amz-Content-SHA256"] = payload
    canonical = signer.canonical_request(request)
    return str(signer.signature(signer.string_to_sign(request, canonical), request))


def _old_signature(environ: Mapping[str, Any], what: RequestSignature, keys: Keys) -> str:
    signer = HmacV1QueryAuth(_credentials(keys))
    headers = HTTPHeaders()
    for name in ("content-md5", "content-type", *_amazon_headers(environ)):
        if _header(environ, name):
            headers[name] = _header(environ, name)
    split = urlsplit(f"http://{environ.get('HTTP_HOST', '')}{environ['RAW_URI']}")
    given = parse_qs(split.query)
    if "x-amz-security-token" in given:
        headers["x-amz-security-token"] = given["x-amz-security-token"][0]
    text = signer.canonical_string(environ["REQUEST_METHOD"], split, headers, str(what.expires))
    return str(signer.sign_string(text))


def _credentials(keys: Keys) -> Credentials:
    return Credentials(keys.access_key_id, keys.secret_access_key)


def _amazon_headers(environ: Mapping[str, Any]) -> list[str]:
    return [key[5:].lower().replace("_", "-") for key in environ if key.startswith("HTTP_X_AMZ_")]


def _header(environ: Mapping[str, Any], name: str) -> str:
    """Return a header as sent: WSGI has one character per byte."""
    key = name.upper().replace("-", "_")
    value = environ.get(f"HTTP_{key}", environ.get(key, "") if key in ("CONTENT_TYPE", "CONTENT_LENGTH") else "")
    text = str(value)
    try:
        return text.encode("latin-1").decode()
    except UnicodeError:
        return text
