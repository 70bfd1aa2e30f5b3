"""Address for one answer of a custom resource's function: with a secret, on the loopback."""

import json
import secrets
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

LONGEST_BYTES = 4096
"""CloudFormation user guide, crpg-ref-responses (2026-11): "The total size of the response body can't exceed 4096
bytes"."""
SOCKET_TIMEOUT_S = 10.0


class Answers:
    """Listener for one answer, in place of AWS's presigned S3 address."""

    def __init__(self) -> None:
        self.answer: dict[str, Any] | None = None
        """Answer of the function. Default: none yet."""
        self._path = f"/{secrets.token_urlsafe(32)}"
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.1}, daemon=True)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}{self._path}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        answers = self

        class One(BaseHTTPRequestHandler):
            timeout = SOCKET_TIMEOUT_S

            def do_PUT(self) -> None:
                known = secrets.compare_digest(self.path.encode(), answers._path.encode())
                length = self.headers.get("Content-Length", "")
                if not known or answers.answer is not None or not length.isdigit():
                    self.send_error(403)
                    return
                answers.answer = _read(self.rfile.read(min(int(length), LONGEST_BYTES + 1)))
                self.send_response(200)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_: object) -> None: ...

        return One


def _read(body: bytes) -> dict[str, Any]:
    if len(body) > LONGEST_BYTES:
        return {"Status": "FAILED", "Reason": "Response object is too long."}
    try:
        answer = json.loads(body)
    except ValueError:
        answer = None
    if not isinstance(answer, dict) or answer.get("Status") not in ("SUCCESS", "FAILED"):
        return {
            "Status": "FAILED",
            "Reason": "Invalid Response object: Value of property Status must be SUCCESS or FAILED",
        }
    return answer
