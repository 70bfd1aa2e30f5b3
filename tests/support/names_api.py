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

    While ``refuses`` is true every request is refused; watches that are open go on until ``cut``. Only the present
    version is known: a watch that wants to go on from an earlier one is told to list again.
    """

    def __init__(self) -> None:
        self.objects: dict[str, dict[str, Any]] = {"namespaces": {}, "services": {}, "endpoints": {}}
        self.watches: dict[str, list[queue.Queue[dict[str, Any] | None]]] = {kind: [] for kind in self.objects}
        self.version = 1
        self.changing = threading.Lock()
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
        with self.changing:
            listed = {"metadata": {"resourceVersion": str(self.version)}, "items": [*self.objects[kind].values()]}
            if "watch" in query and query["resourceVersion"] == [str(self.version)]:
                self.watches[kind].append(changes)
            elif "watch" in query:
                changes.put({"type": "ERROR", "object": {"kind": "Status", "code": 410}})
                changes.put(None)
        request.send_response(200)
        request.end_headers()
        if "watch" not in query:
            request.wfile.write(json.dumps(listed).encode())
            return
        while change := changes.get():
            request.wfile.write(json.dumps(change).encode() + b"\n")
            request.wfile.flush()

    def put(self, kind: str, name: str, **fields: Any) -> None:
        namespace = {} if kind == "namespaces" else {"namespace": "default"}
        self._change(kind, "ADDED", {"metadata": {"name": name, **namespace}, **fields})

    def delete(self, kind: str, name: str) -> None:
        self._change(kind, "DELETED", self.objects[kind][name])

    def _change(self, kind: str, what: str, one: dict[str, Any]) -> None:
        with self.changing:
            self.version += 1
            changed = {**one, "metadata": {**one["metadata"], "resourceVersion": str(self.version)}}
            self.objects[kind].pop(one["metadata"]["name"], None)
            if what != "DELETED":
                self.objects[kind][one["metadata"]["name"]] = changed
            for each in self.watches[kind]:
                each.put({"type": what, "object": changed})

    def cut(self) -> None:
        with self.changing:
            for each in (one for watches in self.watches.values() for one in watches):
                each.put(None)
            self.watches = {kind: [] for kind in self.objects}

    def close(self) -> None:
        self.cut()
        self.server.shutdown()
        self.server.server_close()
