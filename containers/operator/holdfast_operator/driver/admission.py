"""
Admission webhook: refuses a job with all of its mistakes (admission.k8s.io/v1, AdmissionReview).

The chart ignores a webhook that does not answer: the operator writes the same words into the condition Invalid.
"""

import json
import ssl
import threading
from collections.abc import Callable, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from holdfast_common import ClusterAccess, KubernetesError
from holdfast_operator.driver.cluster import pods_path
from holdfast_operator.hyperpod import KIND as HYPERPOD_KIND
from holdfast_operator.hyperpod import hyperpod_mistakes, to_holdfast_job
from holdfast_operator.jobs import Job, JobError, mistakes, read_job
from holdfast_operator.objects import pod_of

MOST_BYTES = 8 << 20
TIMEOUT_S = 10.0
_NEVER = (400, 422)
"""Answers to a pod that cannot be read, and to one that is invalid."""


def answer_to(review: Mapping[str, Any], *, trial: Callable[[Job], str]) -> dict[str, Any]:
    """
    Return the review with its response.

    Args:
        trial: Returns why the API server refuses a pod of the job; empty if it does not.

    Raises:
        KeyError, TypeError: it is no review.
    """
    request = review["request"]
    found = _refusals(request) or _refused_pod(request, trial=trial)
    response: dict[str, Any] = {"uid": request["uid"], "allowed": not found}
    if found:
        response["status"] = {"code": 422, "message": "\n".join(found)}
    return {"apiVersion": review["apiVersion"], "kind": review["kind"], "response": response}


def pod_trial(access: ClusterAccess) -> Callable[[Job], str]:
    """Return a trial by a request with dryRun. What may change, such as a quota, is no refusal."""

    def trial(job: Job) -> str:
        pod = pod_of(job, 0)
        del pod["metadata"]["ownerReferences"]  # a job that is not created yet has no UID
        try:
            access.client().create(f"{pods_path(job.namespace)}?dryRun=All", pod)
        except KubernetesError as error:
            return str(error) if error.code in _NEVER else ""
        return ""

    return trial


def _refused_pod(request: Mapping[str, Any], *, trial: Callable[[Job], str]) -> list[str]:
    new = request.get("object")
    if new is None or request.get("oldObject") is not None:
        return []
    named = _named(new)
    job = read_job(_identified(to_holdfast_job(named) if new.get("kind") == HYPERPOD_KIND else named))
    found = trial(job)
    return [f"spec.template: Kubernetes refuses its pod: {found}"] if found else []


def _refusals(request: Mapping[str, Any]) -> list[str]:
    new, old = request.get("object"), request.get("oldObject")
    if new is None or new["metadata"].get("deletionTimestamp"):
        return []
    if old is not None and old.get("spec") == new.get("spec"):
        return []  # labels and finalizers of an invalid job may still change
    if new.get("kind") == HYPERPOD_KIND:
        return _of_hyperpod(new, old)
    found = mistakes(_named(new))
    if found or old is None:
        return found
    try:
        before, after = read_job(_identified(old)), read_job(_identified(new))
    except JobError:
        return []
    runs = before.status.nodes > 0 and not before.status.has_ended
    if runs and before.shape != after.shape:
        return [
            "spec: got another template, processesPerNode or nodes while pods run; allowed: other values of "
            "nodes.size, suspend, recovery, deadlines, logRules and ttlSecondsAfterFinished; to change others, suspend "
            "it first"
        ]
    return []


def _of_hyperpod(new: Mapping[str, Any], old: Mapping[str, Any] | None) -> list[str]:
    found = hyperpod_mistakes(_named(new))
    if found or old is None or hyperpod_mistakes(old):
        return found
    before, after = to_holdfast_job(old)["spec"], to_holdfast_job(new)["spec"]
    if all(before[name] == after[name] for name in ("nodes", "processesPerNode", "template")):
        return []
    return [
        "spec: got other replicaSpecs or nprocPerNode; allowed: other values of runPolicy; to change others, delete "
        "the job and create it again"
    ]


def _named(manifest: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the manifest with the longest name that the server may generate from ``generateName``."""
    metadata = manifest["metadata"]
    if metadata.get("name") or not metadata.get("generateName"):
        return manifest
    return {**manifest, "metadata": {**metadata, "name": f"{metadata['generateName']}xxxxx"}}


def _identified(manifest: Mapping[str, Any]) -> dict[str, Any]:
    metadata = {"namespace": "", "uid": "", **manifest["metadata"]}
    return {**manifest, "metadata": metadata}


class AdmissionServer:
    """
    Reviews at /validate and liveness at /healthz, over TLS.

    Args:
        folder: With ``tls.crt`` and ``tls.key``.
        port: 0 for any.
        trial: Of ``answer_to``.

    Raises:
        OSError: no certificate, or no port.
    """

    def __init__(self, *, folder: Path, port: int, is_alive: Callable[[], bool], trial: Callable[[Job], str]) -> None:
        self._folder = folder
        self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.reload()
        self._server = _server(port, context=self._context, is_alive=is_alive, trial=trial)
        self.port = int(self._server.server_address[1])
        self._thread = threading.Thread(target=self._server.serve_forever, name="admission", daemon=True)
        self._thread.start()

    def reload(self) -> None:
        """Read the certificate again, which the kubelet exchanges. Raises: OSError."""
        self._context.load_cert_chain(self._folder / "tls.crt", self._folder / "tls.key")

    def close(self) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


def _server(
    port: int, *, context: ssl.SSLContext, is_alive: Callable[[], bool], trial: Callable[[Job], str]
) -> ThreadingHTTPServer:
    class Handler(BaseHTTPRequestHandler):
        timeout = TIMEOUT_S

        def do_GET(self) -> None:
            is_health = self.path.partition("?")[0] == "/healthz"
            self._answer(200 if is_health and is_alive() else 500 if is_health else 404, b"")

        def do_POST(self) -> None:
            size = int(self.headers.get("Content-Length") or 0)
            if not 0 < size <= MOST_BYTES:
                self._answer(413, b"")
                return
            try:
                body = json.dumps(answer_to(json.loads(self.rfile.read(size)), trial=trial)).encode()
            except (ValueError, KeyError, TypeError, AttributeError):
                self._answer(400, b"allowed: an AdmissionReview of admission.k8s.io/v1")
                return
            self._answer(200, body)

        def _answer(self, code: int, body: bytes) -> None:
            self.send_response(code)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    class Server(ThreadingHTTPServer):
        def finish_request(self, request: Any, client_address: Any) -> None:
            """Handshake in the connection's own thread, so that a silent peer stops no other."""
            request.settimeout(TIMEOUT_S)
            with context.wrap_socket(request, server_side=True) as wrapped:
                super().finish_request(wrapped, client_address)

        def handle_error(self, request: Any, client_address: Any) -> None:
            pass

    return Server(("", port), Handler)
