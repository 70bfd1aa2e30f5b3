"""Calls of JSON 1.1 services: signed, with a deadline, retried where that can help."""

import json
import random
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import Any, Optional

from holdfast_agent.aws.credentials import CredentialSource
from holdfast_agent.aws.errors import AwsError
from holdfast_agent.aws.http import Answer, exchange
from holdfast_agent.aws.settings import Settings
from holdfast_agent.aws.signing import Request, signed_headers

_CLOCK_REFUSALS = (
    "InvalidSignatureException",
    "RequestExpired",
    "RequestInTheFuture",
    "RequestTimeTooSkewed",
    "SignatureDoesNotMatch",
    "AuthFailure",
)
"""Error codes of a clock that is wrong by more than five minutes (botocore retries the same)."""
_SKEW_S = 240.0
_EXPIRED = ("ExpiredToken", "ExpiredTokenException", "UnrecognizedClientException", "InvalidClientTokenId")
_LATER = (
    "InternalFailure",
    "InternalServerError",
    "LimitExceededException",
    "RequestLimitExceeded",
    "ServiceUnavailable",
    "ServiceUnavailableException",
    "Throttling",
    "ThrottlingException",
    "ThrottledException",
    "TooManyRequestsException",
    "Unreachable",
)


@dataclass(frozen=True)
class Service:
    signing_name: str
    host_prefix: str
    target: str
    """Prefix of an operation in X-Amz-Target."""
    service_id: str
    """In AWS_ENDPOINT_URL_<service_id>."""


LOGS = Service(signing_name="logs", host_prefix="logs", target="Logs_20140328", service_id="CLOUDWATCH_LOGS")
SAGEMAKER = Service(signing_name="sagemaker", host_prefix="api.sagemaker", target="SageMaker", service_id="SAGEMAKER")


class Api:
    """One service; for a single thread. ``attempts`` counts the first; ``pause_s`` doubles after each."""

    def __init__(
        self,
        service: Service,
        *,
        settings: Settings,
        credentials: Optional[CredentialSource] = None,
        timeout_s: float = 10.0,
        attempts: int = 3,
        pause_s: float = 0.5,
        clock: Callable[[], float] = time.time,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._service, self._settings = service, settings
        self._credentials = credentials or CredentialSource(settings=settings)
        self._timeout_s, self._attempts, self._pause_s = timeout_s, attempts, pause_s
        self._clock, self._sleep = clock, sleep
        self._region = settings.region
        self.skew_s = 0.0
        """AWS's clock minus this machine's, once it is known to be wrong."""

    def now_s(self) -> float:
        return self._clock() + self.skew_s

    def call(self, operation: str, **parameters: Any) -> "dict[str, Any]":
        """Raises AwsError after the last attempt."""
        body = json.dumps(parameters).encode()
        for attempt in range(1, self._attempts + 1):
            try:
                return self._once(operation, body)
            except AwsError as error:
                if attempt == self._attempts or not self._helps(error):
                    raise
            self._sleep(self._pause_s * 2 ** (attempt - 1) * random.uniform(0.5, 1.5))
        raise AssertionError("unreachable")

    def _helps(self, error: AwsError) -> bool:
        if error.code in _EXPIRED:
            self._credentials.forget()
            return True
        return error.code in _LATER or error.code == "ClockCorrected" or error.status >= 500

    def _once(self, operation: str, body: bytes) -> "dict[str, Any]":
        region = self._found_region()
        keys = self._credentials.get()
        url = self._settings.endpoint(
            service_id=self._service.service_id, host_prefix=self._service.host_prefix, region=region
        )
        request = Request(
            method="POST",
            url=url + "/",
            body=body,
            headers={
                "Content-Type": "application/x-amz-json-1.1",
                "X-Amz-Target": f"{self._service.target}.{operation}",
            },
        )
        headers = signed_headers(
            request,
            access_key=keys.access_key,
            secret_key=keys.secret_key,
            token=keys.token,
            region=region,
            service=self._service.signing_name,
            stamp=time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(self.now_s())),
        )
        answer = exchange("POST", request.url, headers=headers, body=body, timeout_s=self._timeout_s)
        return self._parsed(answer)

    def _parsed(self, answer: Answer) -> "dict[str, Any]":
        try:
            document: Any = json.loads(answer.body) if answer.body.strip() else {}
        except ValueError:
            document = None
        if answer.status < 300 and isinstance(document, dict):
            return document
        fields: Mapping[str, Any] = document if isinstance(document, dict) else {}
        named = str(fields.get("__type") or fields.get("code") or answer.headers.get("x-amzn-errortype") or "")
        code = named.partition(":")[0].rpartition("#")[2] or f"Http{answer.status}"
        message = str(fields.get("message") or fields.get("Message") or answer.body[:200].decode("utf-8", "replace"))
        if code in _CLOCK_REFUSALS and self._corrects_clock(answer):
            raise AwsError("ClockCorrected", message, status=answer.status)
        raise AwsError(code, message, status=answer.status)

    def _corrects_clock(self, answer: Answer) -> bool:
        try:
            theirs = parsedate_to_datetime(answer.headers.get("date", "")).timestamp()
        except (TypeError, ValueError, IndexError):
            return False
        if abs(theirs - self.now_s()) < _SKEW_S:
            return False
        self.skew_s = theirs - self._clock()
        return True

    def _found_region(self) -> str:
        self._region = self._region or self._credentials.region()
        if not self._region:
            raise AwsError("NoRegion", "no region in the environment or instance metadata; set AWS_REGION")
        return self._region
