"""
Credentials in the order of the AWS clients: environment, container, metadata of the instance.

Source: AWS SDKs and tools reference guide, "Container credential provider" and "IMDS credential provider".
"""

import calendar
import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Optional
from urllib.parse import urlsplit

from holdfast_agent.aws.errors import AwsError
from holdfast_agent.aws.http import Answer, exchange
from holdfast_agent.aws.settings import Settings

METADATA = "http://169.254.169.254"
_RELATIVE = "http://169.254.170.2"
_OPEN_HOSTS = ("169.254.170.2", "169.254.170.23", "fd00:ec2::23", "127.0.0.1", "localhost", "::1")
"""Hosts that may serve a container's credentials without TLS."""
_TOKEN_TTL_S = 21600
_EARLY_S = 300.0
"""Credentials are renewed this long before they expire."""
_TIMEOUT_S, _ATTEMPTS = 2.0, 3


@dataclass(frozen=True)
class Credentials:
    """Keys, and the second (UTC) at which they expire; None: never."""

    access_key: str
    secret_key: str
    token: str = ""
    ends_s: Optional[float] = None


class CredentialSource:
    """Finds credentials and caches them until shortly before they expire."""

    def __init__(self, *, settings: Settings, metadata: str = "", clock: Optional[Callable[[], float]] = None) -> None:
        self._settings = settings
        self._metadata = metadata or settings.get("AWS_EC2_METADATA_SERVICE_ENDPOINT", METADATA).rstrip("/")
        self._clock = clock or time.time
        self._kept: Optional[Credentials] = None

    def get(self) -> Credentials:
        """Return valid credentials; raises AwsError("NoCredentials") where no source has any."""
        kept = self._kept
        if kept is not None and (kept.ends_s is None or kept.ends_s - self._clock() > _EARLY_S):
            return kept
        try:
            self._kept = self._find()
        except AwsError:
            # Those that end soon are better than none.
            if kept is None or kept.ends_s is None or kept.ends_s <= self._clock():
                raise
        assert self._kept is not None
        return self._kept

    def forget(self) -> None:
        self._kept = None

    def region(self) -> str:
        """Region by instance metadata; empty where there are none."""
        try:
            answer = self._ask("placement/region")
        except AwsError:
            return ""
        return answer.body.decode("ascii", "replace").strip() if answer.status == 200 else ""

    def _find(self) -> Credentials:
        settings = self._settings
        if settings.get("AWS_ACCESS_KEY_ID") and settings.get("AWS_SECRET_ACCESS_KEY"):
            return Credentials(
                access_key=settings.get("AWS_ACCESS_KEY_ID"),
                secret_key=settings.get("AWS_SECRET_ACCESS_KEY"),
                token=settings.get("AWS_SESSION_TOKEN"),
            )
        if settings.get("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI"):
            return self._of_container(_RELATIVE + settings.get("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI"))
        if settings.get("AWS_CONTAINER_CREDENTIALS_FULL_URI"):
            return self._of_container(settings.get("AWS_CONTAINER_CREDENTIALS_FULL_URI"))
        if settings.get("AWS_EC2_METADATA_DISABLED").lower() == "true":
            raise AwsError("NoCredentials", "no credentials in the environment, and instance metadata is disabled")
        return self._of_instance()

    def _of_container(self, url: str) -> Credentials:
        parts = urlsplit(url)
        if parts.scheme != "https" and parts.hostname not in _OPEN_HOSTS:
            raise AwsError(
                "NoCredentials",
                f"AWS_CONTAINER_CREDENTIALS_FULL_URI is {url}: allowed without TLS are {', '.join(_OPEN_HOSTS)}",
            )
        headers = {}
        file = self._settings.get("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE")
        token = self._settings.get("AWS_CONTAINER_AUTHORIZATION_TOKEN")
        if file:
            try:
                token = Path(file).read_text("utf-8").strip()
            except (OSError, UnicodeDecodeError) as error:
                raise AwsError("NoCredentials", f"{file}: {error}") from None
        if token:
            headers["Authorization"] = token
        answer = _often("GET", url, headers=headers)
        return _parsed(answer, source=url, code_key=None)

    def _of_instance(self) -> Credentials:
        listed = self._ask("iam/security-credentials/")
        role = listed.body.decode("utf-8", "replace").strip().splitlines()
        if listed.status != 200 or not role:
            raise AwsError("NoCredentials", "the instance has no IAM role", status=listed.status)
        path = f"iam/security-credentials/{role[0]}"
        return _parsed(self._ask(path), source=path, code_key="Code")

    def _ask(self, path: str) -> Answer:
        """Read a path below meta-data/ with a token of its own (IMDSv2)."""
        ttl = {"X-aws-ec2-metadata-token-ttl-seconds": str(_TOKEN_TTL_S)}
        token = _often("PUT", f"{self._metadata}/latest/api/token", headers=ttl)
        if token.status != 200:
            raise AwsError("NoCredentials", f"instance metadata gave no token: {token.status}", status=token.status)
        headers = {"X-aws-ec2-metadata-token": token.body.decode("ascii", "replace").strip()}
        return _often("GET", f"{self._metadata}/latest/meta-data/{path}", headers=headers)


def _often(method: str, url: str, *, headers: "dict[str, str]") -> Answer:
    """Retry: on a busy machine the first response may be late."""
    for attempt in range(1, _ATTEMPTS + 1):
        try:
            answer = exchange(method, url, headers=headers, timeout_s=_TIMEOUT_S * attempt, through_proxy=False)
        except AwsError as error:
            if attempt == _ATTEMPTS:
                raise AwsError("NoCredentials", error.message) from None
            continue
        if answer.status < 500 or attempt == _ATTEMPTS:
            return answer
    raise AssertionError("unreachable")


def _parsed(answer: Answer, *, source: str, code_key: Optional[str]) -> Credentials:
    try:
        document: Any = json.loads(answer.body)
        if answer.status != 200 or (code_key and document.get(code_key, "Success") != "Success"):
            raise AwsError("NoCredentials", f"{source}: {answer.status} {str(document)[:200]}", status=answer.status)
        ends = document.get("Expiration")
        return Credentials(
            access_key=str(document["AccessKeyId"]),
            secret_key=str(document["SecretAccessKey"]),
            token=str(document.get("Token") or ""),
            ends_s=_seconds(str(ends)) if ends else None,
        )
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise AwsError("NoCredentials", f"{source} gave no credentials: {error!r}", status=answer.status) from None


def _seconds(text: str) -> float:
    return float(calendar.timegm(time.strptime(text[:19], "%Y-%m-%dT%H:%M:%S")))
