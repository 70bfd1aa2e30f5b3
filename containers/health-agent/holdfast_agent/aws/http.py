"""One HTTP exchange with a deadline, also for a server that trickles its response."""

import time
import urllib.error
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Optional

from holdfast_agent.aws.errors import AwsError

MOST_BYTES = 16 << 20
"""Of an answer; GetLogEvents answers with at most 1 MiB."""
_CHUNK_BYTES = 1 << 16


@dataclass(frozen=True)
class Answer:
    status: int
    body: bytes
    headers: Mapping[str, str]


def exchange(
    method: str,
    url: str,
    *,
    headers: Mapping[str, str],
    body: Optional[bytes] = None,
    timeout_s: float,
    through_proxy: bool = True,
) -> Answer:
    """
    Send and receive; raises AwsError("Unreachable") without a complete response within ``timeout_s``.

    A DNS lookup has the resolver's own deadline, so call this only from threads that may wait.

    Args:
        through_proxy: Use the environment's proxies.
    """
    until = time.monotonic() + timeout_s
    request = urllib.request.Request(url, data=body, headers=dict(headers), method=method)  # noqa: S310
    handlers: list[urllib.request.BaseHandler] = [] if through_proxy else [urllib.request.ProxyHandler({})]
    try:
        opener = urllib.request.build_opener(_NoRedirect, *handlers)
        with opener.open(request, timeout=timeout_s) as answer:
            return _answer(answer, status=answer.status, until=until)
    except urllib.error.HTTPError as error:
        with error:
            return _answer(error, status=error.code, until=until)
    except (OSError, ValueError, ArithmeticError, urllib.error.URLError) as error:
        raise AwsError("Unreachable", f"{method} {url}: {getattr(error, 'reason', None) or error}") from None
    except Exception as error:  # noqa: BLE001 - http.client has errors of its own for answers that are none
        raise AwsError("Unreachable", f"{method} {url}: {type(error).__name__} {error}") from None


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """Refuses redirects: a signature is valid for one address."""

    def redirect_request(self, *_: Any, **__: Any) -> None:
        return None


def _answer(answer: Any, *, status: int, until: float) -> Answer:
    headers = {str(name).lower(): str(value) for name, value in answer.headers.items()}
    return Answer(status=status, body=_read(answer, until=until), headers=headers)


def _read(answer: Any, *, until: float) -> bytes:
    read = bytearray()
    while True:
        if time.monotonic() > until:
            raise AwsError("Unreachable", "the response took too long")
        part = answer.read1(_CHUNK_BYTES) if hasattr(answer, "read1") else answer.read(_CHUNK_BYTES)
        if not part:
            return bytes(read)
        read += part
        if len(read) > MOST_BYTES:
            raise AwsError("Unreachable", f"the response exceeds {MOST_BYTES} bytes")
