"""The thread that sends the numbers to Prometheus, Amazon's with a signature; none is sent a second time."""

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Optional

from holdfast_agent.aws import AwsError, Credentials, CredentialSource, Request, Settings, exchange, signed_headers
from holdfast_agent.metrics.remote_write import HEADERS, compressed, write_request
from holdfast_agent.signals import Numbers

SIGNING_NAME = "aps"
_AMAZON = ".amazonaws.com"
TIMEOUT_S = 10.0


class Sender:
    """
    Args:
        url: Of remote write; one of Amazon Managed Service for Prometheus is signed for service ``aps``.
        labels: Given to each number.
        numbers: What there is to tell; called in the sender's thread.
        interval_s: Between two. Default: 30 s
        settings: Region, and where credentials are. Default: the environment's
    """

    name = "sending of metrics"

    def __init__(
        self,
        *,
        url: str,
        labels: "Sequence[tuple[str, str]]",
        numbers: "Callable[[], Numbers]",
        interval_s: float = 30.0,
        settings: Optional[Settings] = None,
    ) -> None:
        self._url, self._labels, self._numbers, self._interval_s = url, tuple(labels), numbers, interval_s
        host = url.partition("://")[2].partition("/")[0].partition(":")[0]
        self._signs = host.endswith((_AMAZON, f"{_AMAZON}.cn"))
        self._settings = settings or Settings.read()
        self._credentials = CredentialSource(settings=self._settings)
        self._stopping = threading.Event()
        self._sent = self._failed = 0
        self.problem = ""
        """Why the last one was not taken; empty when it was."""
        self._thread = threading.Thread(target=self._run, name="metrics-sender", daemon=True)

    @property
    def state(self) -> Optional[str]:
        """Why nothing is sent; "" where it is, None before the first."""
        if self._thread.ident is not None and not self._thread.is_alive():
            return "its thread has ended"
        return self.problem or ("" if self._sent else None)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join(2.0)

    def numbers(self) -> "Mapping[str, float]":
        """Of itself."""
        return {"metrics_sent_total": float(self._sent), "metrics_sending_failures_total": float(self._failed)}

    def send(self) -> None:
        """Once; raises AwsError."""
        body = compressed(write_request(self._numbers(), time_ms=int(time.time() * 1000), labels=self._labels))
        answer = exchange("POST", self._url, headers=self._headers(body), body=body, timeout_s=TIMEOUT_S)
        if answer.status >= 300:
            said = answer.body[:200].decode("utf-8", "replace").strip()
            raise AwsError(f"Http{answer.status}", f"{self._url}: {said}", status=answer.status)

    def _headers(self, body: bytes) -> "Mapping[str, str]":
        if not self._signs:
            return HEADERS
        keys: Credentials = self._credentials.get()
        region = self._settings.region or self._credentials.region()
        return signed_headers(
            Request(method="POST", url=self._url, body=body, headers=HEADERS),
            access_key=keys.access_key,
            secret_key=keys.secret_key,
            token=keys.token,
            region=region,
            service=SIGNING_NAME,
            stamp=time.strftime("%Y%m%dT%H%M%SZ", time.gmtime()),
        )

    def _run(self) -> None:
        while not self._stopping.wait(self._interval_s):
            self._try()

    def _try(self) -> None:
        try:
            self.send()
            self._sent, self.problem = self._sent + 1, ""
        except AwsError as error:
            self._failed, self.problem = self._failed + 1, str(error)
            if error.status in (401, 403):
                self._credentials.forget()
