"""Thread that sends metrics to Prometheus, to Amazon's with a signature; a failed sample is not sent again."""

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
    """Sends ``numbers()`` every ``interval_s``; Amazon Managed Service for Prometheus with a signature for ``aps``."""

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
        """Reason why the last write failed; else empty."""
        self._thread = threading.Thread(target=self._run, name="metrics-sender", daemon=True)

    @property
    def state(self) -> Optional[str]:
        """Reason why nothing is sent; "" where it works, None before the first."""
        if self._thread.ident is not None and not self._thread.is_alive():
            return "thread has exited"
        return self.problem or ("" if self._sent else None)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join(2.0)

    def numbers(self) -> "Mapping[str, float]":
        return {"metrics_sent_total": float(self._sent), "metrics_sending_failures_total": float(self._failed)}

    def send(self) -> None:
        body = compressed(write_request(self._numbers(), time_ms=int(time.time() * 1000), labels=self._labels))
        answer = exchange("POST", self._url, headers=self._headers(body), body=body, timeout_s=TIMEOUT_S)
        if answer.status >= 300:
            text = answer.body[:200].decode("utf-8", "replace").strip()
            raise AwsError(f"Http{answer.status}", f"{self._url}: {text}", status=answer.status)

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
