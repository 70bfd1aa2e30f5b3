"""Routes of REST operations: operation and path members of a request."""

import re
import urllib.parse
from typing import Any

from moto.core.model import ServiceModel
from werkzeug.wrappers import Request

LABEL = re.compile(r"\{(\w+)(\+?)\}")


class Routes:
    def __init__(self, model: ServiceModel) -> None:
        self._routes: list[tuple[str, re.Pattern[str], str]] = []
        for name in model.operation_names:
            http: dict[str, Any] = model.operation_model(name).http
            if http.get("requestUri", "/") != "/":
                self._routes.append((http["method"], _pattern(http["requestUri"]), name))

    def operation(self, request: Request) -> str:
        """Return the operation's name, or ""."""
        return self._match(request)[0]

    def labels(self, request: Request) -> dict[str, str]:
        return self._match(request)[1]

    def _match(self, request: Request) -> tuple[str, dict[str, str]]:
        path = _raw_path(request)
        for method, pattern, name in self._routes:
            found = pattern.fullmatch(path) if method == request.method else None
            if found:
                return name, {key: urllib.parse.unquote(value) for key, value in found.groupdict().items()}
        return "", {}


def _pattern(template: str) -> re.Pattern[str]:
    text, end = "", 0
    path = template.partition("?")[0]
    for label in LABEL.finditer(path):
        text += re.escape(path[end : label.start()]) + f"(?P<{label[1]}>{'.+' if label[2] else '[^/]+'})"
        end = label.end()
    return re.compile(text + re.escape(path[end:]) + "/?")


def _raw_path(request: Request) -> str:
    """Return the undecoded path, so that an ARN stays one part."""
    raw = str(request.environ.get("RAW_URI") or urllib.parse.quote(request.path))
    return urllib.parse.urlparse(raw).path
