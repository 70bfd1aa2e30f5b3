"""
Signer of a token, as the embedded STS reports it, mapped to EKS's form of a principal.

Source: kubernetes-sigs/aws-iam-authenticator at 81b1dab (2026-07-14), pkg/token/token.go and pkg/arn/arn.go.
The request goes to the configured endpoint, not to the token's host, and follows no redirect.
"""

import datetime
import http.client
import re
from collections.abc import Collection
from dataclasses import dataclass
from urllib.parse import urlsplit
from xml.etree import ElementTree

from holdfast.localcloud.kubernetes.access.tokens import CLUSTER_HEADER, presigned_request

TIMEOUT_S = 10.0
MOST_BYTES = 1 << 16
SESSION = re.compile(
    r"arn:(?P<partition>aws[a-z-]*):sts::(?P<account>\d{12}):assumed-role/(?P<role>.+)/(?P<session>[^/]+)"
)
PERMANENT = re.compile(r"arn:aws[a-z-]*:(?:iam::\d{12}:(?:root|(?:user|role)/.+)|sts::\d{12}:federated-user/.+)")


class StsError(Exception):
    """STS refused a token, or did not answer."""


@dataclass(frozen=True, kw_only=True)
class Identity:
    arn: str
    canonical_arn: str
    """Of a session: the ARN of its role, without the path, which STS omits."""
    account: str
    principal_id: str
    session_name: str = ""
    """Default: it is no session."""
    access_key_id: str = ""


@dataclass(frozen=True, kw_only=True)
class Sts:
    endpoint: str
    cluster_name: str
    hosts: Collection[str]
    """HOST:PORT of each address of the embedded AWS that a token may name."""

    def identify(self, token: str) -> Identity:
        """Return the signer of a token. Raises: TokenError; StsError."""
        request = presigned_request(token, hosts=self.hosts, now=datetime.datetime.now(datetime.UTC))
        parts = urlsplit(self.endpoint)
        connection = http.client.HTTPConnection(parts.hostname or "", parts.port or 80, timeout=TIMEOUT_S)
        try:
            connection.putrequest("GET", request.target, skip_host=True, skip_accept_encoding=True)
            connection.putheader("Host", request.host)
            connection.putheader(CLUSTER_HEADER, self.cluster_name)
            connection.endheaders()
            answer = connection.getresponse()
            body = answer.read(MOST_BYTES)
        except (OSError, http.client.HTTPException) as error:
            raise StsError(f"STS does not answer: {type(error).__name__}") from None
        finally:
            connection.close()
        if answer.status != http.HTTPStatus.OK:
            raise StsError(f"error from AWS (expected 200, got {answer.status}): {_code(body)}")
        return identity_in(body, access_key_id=request.access_key_id)


def identity_in(body: bytes, *, access_key_id: str) -> Identity:
    """Return the principal of GetCallerIdentity. Raises: StsError: one that cannot log in to a cluster."""
    texts = _texts(body)
    arn, account, user = texts.get("Arn", ""), texts.get("Account", ""), texts.get("UserId", "")
    if not (arn and account and user):
        raise StsError("STS's answer has no identity")
    session = SESSION.fullmatch(arn)
    if session is not None:
        principal, _, name = user.partition(":")
        if not name or ":" in name:
            raise StsError(f"malformed UserID {user!r}")
        return Identity(
            arn=arn,
            canonical_arn=f"arn:{session['partition']}:iam::{session['account']}:role/{session['role']}",
            account=account,
            principal_id=principal,
            session_name=name,
            access_key_id=access_key_id,
        )
    if PERMANENT.fullmatch(arn) is None:
        raise StsError(f"{arn} is not a valid identity")
    return Identity(arn=arn, canonical_arn=arn, account=account, principal_id=user, access_key_id=access_key_id)


def _texts(body: bytes) -> dict[str, str]:
    try:
        root = ElementTree.fromstring(body)  # noqa: S314 - it is the embedded AWS's own answer
    except ElementTree.ParseError:
        return {}
    return {each.tag.rpartition("}")[2]: each.text or "" for each in root.iter()}


def _code(body: bytes) -> str:
    return _texts(body).get("Code", "")[:80]
