"""The part of an API server that a DNS server reads: namespaces, services and endpoints."""

import json
import queue
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlparse

TOKEN = "of-a-test"


class ApiServer:
    """
    Lists and watches of three kinds over real HTTP.

    While ``refuses`` is true every request is refused; watches that are open go on until ``cut``.
    """

    def __init__(self) -> None:
        self.objects: dict[str, dict[str, Any]] = {"namespaces": {}, "services": {}, "endpoints": {}}
        self.watches: dict[str, list[queue.Queue[dict[str, Any] | None]]] = {kind: [] for kind in self.objects}
        self.lists = 0
        self.refuses = False
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                outer.answer(self)

            def log_message(self, *_: object) -> None: ...

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True).start()
        self.url = f"http://127.0.0.1:{self.server.server_port}"

    def answer(self, request: BaseHTTPRequestHandler) -> None:
        address = urlparse(request.path)
        kind, query = address.path.rpartition("/")[2], parse_qs(address.query)
        if self.refuses or request.headers["Authorization"] != f"Bearer {TOKEN}":
            request.send_error(401)
            return
        changes: queue.Queue[dict[str, Any] | None] = queue.Queue()
        if "watch" in query:
            self.watches[kind].append(changes)
            if query["resourceVersion"] != ["1"]:
                changes.put({"type": "ERROR", "object": {"kind": "Status", "code": 410}})
        request.send_response(200)
        request.end_headers()
        if "watch" not in query:
            self.lists += 1
            listed = {"metadata": {"resourceVersion": "1"}, "items": [*self.objects[kind].values()]}
            request.wfile.write(json.dumps(listed).encode())
            return
        while change := changes.get():
            request.wfile.write(json.dumps(change).encode() + b"\n")
            request.wfile.flush()

    def put(self, kind: str, name: str, **fields: Any) -> None:
        namespace = {} if kind == "namespaces" else {"namespace": "default"}
        made = {"metadata": {"name": name, **namespace, "resourceVersion": "1"}, **fields}
        self.objects[kind][name] = made
        for each in self.watches[kind]:
            each.put({"type": "ADDED", "object": made})

    def delete(self, kind: str, name: str) -> None:
        for each in self.watches[kind]:
            each.put({"type": "DELETED", "object": self.objects[kind][name]})
        del self.objects[kind][name]

    def cut(self) -> None:
        for kind in self.watches:
            for each in self.watches[kind]:
                each.put(None)
            self.watches[kind] = []

    def close(self) -> None:
        self.cut()
        self.server.shutdown()
        self.server.server_close()
