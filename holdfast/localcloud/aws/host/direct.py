"""Requests of the embedded AWS's own clients, answered in the same process and thread."""

import io
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

from botocore.awsrequest import AWSResponse
from werkzeug.test import EnvironBuilder, run_wsgi_app

OWN = "holdfast.own"
"""In the WSGI environment of requests that never left this process; nothing that comes through a socket sets it."""


class _Raw(io.BytesIO):
    def stream(self, **_: Any) -> Iterator[bytes]:
        part = self.read()
        while part:
            yield part
            part = self.read()


class DirectTransport:
    """Calls a WSGI application where botocore would send a request, which saves half of the work and its threads."""

    def __init__(self, application: Any) -> None:
        self._application = application

    def __call__(self, request: Any, **_: Any) -> AWSResponse:
        parts = urlsplit(request.url)
        body = request.body.read() if hasattr(request.body, "read") else request.body
        headers = {
            key: value.decode() if isinstance(value, bytes) else str(value) for key, value in request.headers.items()
        }
        headers.pop("Transfer-Encoding", None)
        builder = EnvironBuilder(
            path=parts.path,
            query_string=parts.query,
            method=request.method,
            headers=headers,
            input_stream=io.BytesIO(body.encode() if isinstance(body, str) else body or b""),
            base_url=f"{parts.scheme}://{parts.netloc}/",
        )
        environ = builder.get_environ()
        environ["CONTENT_LENGTH"] = str(len(body or b""))
        environ[OWN] = True
        chunks, status, reported = run_wsgi_app(self._application, environ, buffered=True)
        raw: Any = _Raw(b"".join(chunks))
        return AWSResponse(request.url, int(status.split()[0]), dict(reported), raw)
