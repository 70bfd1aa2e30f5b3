"""
Read-only image registry for the nodes of a local EKS: the pull half of the OCI distribution specification 1.1.

containerd sends every pull here, with the requested registry in ``ns``. Only nodes are served, by the caller's address.
"""

import collections
import json
import logging
import re
import socket
import threading
from collections.abc import Callable
from urllib.parse import parse_qs, urlsplit

from holdfast.localcloud.containers import ImageStore
from holdfast.localcloud.supervision import HttpService, RequestHandler

from .catalog import ImageCatalog
from .layers import MANIFEST_TYPE, Image, digest_of
from .node_root import NodeRoot
from .stand_ins import StandIns

PORT = 5000
_MOST_KEPT = 256
_PATH = re.compile(
    r"/v2/(?P<name>[a-zA-Z0-9._/-]{1,255})/(?P<kind>manifests|blobs)/(?P<reference>[a-zA-Z0-9._:-]{1,256})"
)

_log = logging.getLogger(__name__)


class Registry(HttpService):
    """Service in the nodes' network; one thread, plus one per open connection."""

    def __init__(
        self,
        *,
        listener: socket.socket,
        store: ImageStore,
        stand_ins: StandIns,
        root: NodeRoot,
        is_node: Callable[[str], bool],
    ) -> None:
        self._offered = ImageCatalog(store=store, stand_ins=stand_ins, root=root)
        self._kept: collections.OrderedDict[str, Image] = collections.OrderedDict()
        self._lock = threading.Lock()

        class Handler(_Handler):
            pass

        Handler.answer, Handler.is_node = staticmethod(self.answer), staticmethod(is_node)
        super().__init__(name="registry", listener=listener, handler=Handler)

    def answer(self, target: str) -> tuple[int, str, bytes]:
        """Return status, media type and content for a path with its query."""
        parts = urlsplit(target)
        if parts.path in ("/v2", "/v2/"):
            return 200, "application/json", b"{}"
        match = _PATH.fullmatch(parts.path)
        if match is None:
            return _error(404, "NAME_UNKNOWN", "no such path")
        reference = match["reference"]
        if match["kind"] == "blobs":
            blob = self._blob(reference)
            return _error(404, "BLOB_UNKNOWN", reference) if blob is None else (200, "application/octet-stream", blob)
        image = self._kept_image(reference) if ":" in reference else self._named(parts.query, match["name"], reference)
        if image is None:
            return _error(404, "MANIFEST_UNKNOWN", f"{match['name']}:{reference}")
        return 200, MANIFEST_TYPE, image.manifest

    def _named(self, query: str, name: str, tag: str) -> Image | None:
        registry = parse_qs(query).get("ns", [""])[0]
        image = self._offered.find(f"{registry}/{name}:{tag}" if registry else f"{name}:{tag}")
        if image is not None:
            with self._lock:
                self._kept[image.digest] = image
                self._kept.move_to_end(image.digest)
                while len(self._kept) > _MOST_KEPT:
                    self._kept.popitem(last=False)
        return image

    def _kept_image(self, digest: str) -> Image | None:
        with self._lock:
            return self._kept.get(digest)

    def _blob(self, digest: str) -> bytes | None:
        with self._lock:
            return next((image.blobs[digest] for image in self._kept.values() if digest in image.blobs), None)


class _Handler(RequestHandler):
    server_version = "holdfast"
    answer: Callable[[str], tuple[int, str, bytes]]
    is_node: Callable[[str], bool]

    def do_GET(self) -> None:  # noqa: N802  the library's name
        if not type(self).is_node(self.client_address[0]):
            self._send(*_error(403, "DENIED", "only nodes are answered"))
            return
        try:
            answer = type(self).answer(self.path)
        except Exception as error:  # noqa: BLE001 - a node waits for an answer, and asks again
            _log.warning("the registry at %s: %s", self.path, error)
            answer = _error(500, "UNKNOWN", "see the log of the control plane")
        self._send(*answer)

    def do_HEAD(self) -> None:  # noqa: N802  the library's name
        self.do_GET()

    def _send(self, status: int, media_type: str, content: bytes) -> None:
        digest = {"Docker-Content-Digest": digest_of(content)} if status == 200 else {}
        headers = {"Docker-Distribution-Api-Version": "registry/2.0", **digest}
        self.send(status, content, kind=media_type, headers=headers)


def _error(status: int, code: str, message: str) -> tuple[int, str, bytes]:
    document = {"errors": [{"code": code, "message": message}]}
    return status, "application/json", json.dumps(document).encode()
