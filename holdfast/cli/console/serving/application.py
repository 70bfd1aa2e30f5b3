"""Answers of the console: the page, its files, a stream of changes, and the series of a job."""

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qs

from holdfast.cli.console.feed import Board, PagePosition
from holdfast.cli.console.serving.access import Access, Refusal
from holdfast.cli.views.pages import PageFile

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
MOST_STREAMS = 16
HEARTBEAT_S = 10.0
"""Longest silence of a stream: a page that has gone is noticed by it, and so is a console."""
RETRY_MS = 2000
JSON = "application/json"
Start = Callable[[str, list[tuple[str, str]]], Any]
_SAFE = (
    ("Content-Security-Policy", POLICY),
    ("X-Content-Type-Options", "nosniff"),
    ("Referrer-Policy", "no-referrer"),
    ("Cross-Origin-Resource-Policy", "same-origin"),
    ("Cross-Origin-Opener-Policy", "same-origin"),
    ("Cache-Control", "no-store"),
)
_STATUS = {200: "200 OK", 403: "403 Forbidden", 404: "404 Not Found", 405: "405 Method Not Allowed",
           503: "503 Service Unavailable"}  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Answer:
    status: int
    kind: str
    body: Iterable[bytes]


def text(status: int, content: str, *, kind: str = "text/plain; charset=utf-8") -> Answer:
    return Answer(status=status, kind=kind, body=[content.encode()])


class Application:
    """WSGI application."""

    def __init__(self, board: Board, access: Access, files: Mapping[str, PageFile]) -> None:
        self._board, self._access, self._files = board, access, files
        self._streams = threading.BoundedSemaphore(MOST_STREAMS)

    def __call__(self, environ: dict[str, Any], start: Start) -> Iterable[bytes]:
        admitted = environ.get("holdfast.admitted", lambda: None)
        headers = {
            name[5:].replace("_", "-").lower(): str(value) for name, value in environ.items() if name[:5] == "HTTP_"
        }
        found = self._access.admit(environ["REQUEST_METHOD"], environ.get("PATH_INFO", ""), headers)
        if isinstance(found, Refusal):
            answer = text(found.status, f"{found.text}\n")
        else:
            admitted()
            answer = self._answer(found, parse_qs(environ.get("QUERY_STRING", "")))
        length = [("Content-Length", str(len(one))) for one in answer.body] if isinstance(answer.body, list) else []
        start(_STATUS[answer.status], [("Content-Type", answer.kind), *length, *_SAFE])
        return [] if environ["REQUEST_METHOD"] == "HEAD" else answer.body

    def _answer(self, path: str, query: Mapping[str, list[str]]) -> Answer:
        if path == "stream":
            return self._stream()
        if path == "series":
            found = self._board.series(query.get("job", [""])[0], now_ns=time.time_ns())
            return text(404, "no such job\n") if found is None else text(200, found, kind=JSON)
        file = self._files.get(path)
        if file is None:
            return text(404, "no such page\n")
        return Answer(status=200, kind=file.kind, body=[file.content])

    def _stream(self) -> Answer:
        if not self._streams.acquire(blocking=False):
            return text(503, f"{MOST_STREAMS} pages are open; close one of them\n")
        return Answer(status=200, kind="text/event-stream", body=_Messages(self._board, self._streams.release))


class _Messages:
    """Server-sent events (HTML standard, section 9.2); closed by the server, also before the first one."""

    def __init__(self, board: Board, release: Callable[[], None]) -> None:
        self._board, self._release = board, release

    def __iter__(self) -> Iterator[bytes]:
        position = PagePosition()
        yield f"retry: {RETRY_MS}\n\n".encode()
        while not self._board.is_closed:
            found = self._board.messages(position, timeout_s=HEARTBEAT_S)
            yield b"".join(f"event: {name}\ndata: {data}\n\n".encode() for name, data in found) or b": still here\n\n"
        yield b"event: ended\ndata: null\n\n"

    def close(self) -> None:
        release, self._release = self._release, lambda: None
        release()
