"""One HTTP exchange with a deadline: a server that trickles its answer is given up as one that is silent."""

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
    """What came back, whatever its status."""

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
    Send and receive; raises AwsError("Unreachable") where there was no whole answer in ``timeout_s``.

    A look-up of a name has the resolver's own deadline, which is why nothing here is called where time matters.
    """
    until = time.monotonic() + timeout_s
    request = urllib.request.Request(url, data=body, headers=dict(headers), method=method)  # noqa: S310
    handlers = [] if through_proxy else [urllib.request.ProxyHandler({})]
    try:
        opener = urllib.request.build_opener(_NoRedirect, *handlers)
        with opener.open(request, timeout=timeout_s) as answer:
            return Answer(status=answer.status, body=_read(answer, until=until), headers=_lower(answer.headers))
    except urllib.error.HTTPError as error:
        with error:
            return Answer(status=error.code, body=_read(error, until=until), headers=_lower(error.headers))
    except (OSError, ValueError, ArithmeticError, urllib.error.URLError) as error:
        raise AwsError("Unreachable", f"{method} {url}: {getattr(error, 'reason', None) or error}") from None
    except Exception as error:  # noqa: BLE001 - http.client has errors of its own for answers that are none
        raise AwsError("Unreachable", f"{method} {url}: {type(error).__name__} {error}") from None


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """A signature holds for one address."""

    def redirect_request(self, *_: Any, **__: Any) -> None:
        return None


def _read(answer: Any, *, until: float) -> bytes:
    read = bytearray()
    while True:
        if time.monotonic() > until:
            raise AwsError("Unreachable", "the answer took too long")
        part = answer.read1(_CHUNK_BYTES) if hasattr(answer, "read1") else answer.read(_CHUNK_BYTES)
        if not part:
            return bytes(read)
        read += part
        if len(read) > MOST_BYTES:
            raise AwsError("Unreachable", f"the answer has more than {MOST_BYTES} bytes")


def _lower(headers: Any) -> "dict[str, str]":
    return {str(name).lower(): str(value) for name, value in headers.items()}
