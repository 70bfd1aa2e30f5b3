"""The front door: which service a request is for, ours or moto's, and what surrounds its answer.

A request's service and region come from the credential scope of its signature (nobody checks the signature itself),
its operation from X-Amz-Target or Action. Requests to moto run inside the gate, and every request that may have
changed something is told to the persistence. The private plane lives under ``/_holdfast/``.
"""

import io
import json
import logging
import re
import time
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs

from moto.core.utils import get_service_model
from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
from werkzeug.test import run_wsgi_app
from werkzeug.wrappers import Request, Response

from holdfast.localcloud.aws import _bucket_policy, room
from holdfast.localcloud.aws._clients import DEFAULT_ACCOUNT, OWN_ACCESS_KEY
from holdfast.localcloud.aws._errors import NotOurs, ServiceError
from holdfast.localcloud.aws._gate import Gate
from holdfast.localcloud.aws._service import Caller, HostedService, error_response

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIEnvironment

log = logging.getLogger(__name__)

DEFAULT_REGION = "us-west-2"
PRIVATE = "/_holdfast/"
SCOPE = re.compile(r"Credential=(?P<key>[^/,\s]+)/\d{8}/(?P<region>[^/]+)/(?P<service>[^/]+)/aws4_request")
QUERY_SCOPE = re.compile(r"(?P<key>[^/]+)/\d{8}/(?P<region>[^/]+)/(?P<service>[^/]+)/aws4_request")


class Front:
    """The WSGI application."""

    def __init__(
        self,
        *,
        services: Mapping[str, HostedService],
        private: Callable[[Request], Response],
        gate: Gate,
    ) -> None:
        self.ready = False
        """Until it is, only our own services are answered: a caller must never take what is not restored for gone."""
        self.changed: Callable[[str], None] = lambda _name: None
        self.changed_moto: Callable[[str], None] = lambda _name: None
        self.refusal: Callable[..., str] = lambda **_: ""
        """Why a change that brings so many bytes cannot be kept; empty when it can."""
        self._services = services
        self._private = private
        self._gate = gate
        self._moto = DomainDispatcherApplication(create_backend_app)

    def __call__(self, environ: "WSGIEnvironment", start_response: "StartResponse") -> Iterable[bytes]:
        started = time.monotonic()
        _buffer_body(environ)
        request = Request(environ)
        try:
            response = self._answer(request)
        except Exception as error:
            log.exception("%s %s failed", request.method, request.path)
            failure = ServiceError("InternalFailure", f"{type(error).__name__}: {error}", 500)
            response = error_response(protocol=_protocol(request, ""), error=failure)
        if log.isEnabledFor(logging.DEBUG):
            what = request.headers.get("X-Amz-Target") or _action(request) or request.path
            took = (time.monotonic() - started) * 1000
            log.debug("%s %s %s %.0f ms", request.method, what, response.status_code, took)
        return response(environ, start_response)

    def _answer(self, request: Request) -> Response:
        if request.path.startswith(PRIVATE):
            return self._private(request)
        key, region, service = _scope(request)
        hosted = self._services.get(service)
        operation = _operation(request) or (hosted.routes.operation(request) if hosted is not None else "")
        if not self.ready and key != OWN_ACCESS_KEY:
            restoring = ServiceError("ServiceUnavailable", "the embedded AWS is restoring its state; try again", 503)
            return error_response(protocol=_protocol(request, service), error=restoring)
        unkept = self._unkept(request, operation)
        if unkept is not None:
            return error_response(protocol=_protocol(request, service), error=unkept)
        if hosted is not None and operation:
            if hosted.owns(operation):
                caller = Caller(account=self._account(request, key), region=region or DEFAULT_REGION)
                try:
                    return self._ours(hosted, request, operation, caller)
                except NotOurs:
                    pass
            elif not hosted.beside_moto:
                return _not_implemented(request, service, operation)
        elif hosted is not None and not hosted.beside_moto:
            return _not_implemented(request, service, "")
        return self._motos(request, service, operation)

    def _unkept(self, request: Request, operation: str) -> ServiceError | None:
        """The refusal of a change that the disk does not take. What deletes makes room, and is let through."""
        if not room.is_change(method=request.method, operation=operation, query=request.args):
            return None
        why = self.refusal(wanted=request.content_length or 0)
        return ServiceError("InsufficientStorage", f"{why}; nothing was changed", 507) if why else None

    def _ours(self, hosted: HostedService, request: Request, operation: str, caller: Caller) -> Response:
        response = hosted.handle(request=request, operation=operation, caller=caller)
        if not operation.startswith(room.READING):
            self.changed(hosted.name)
        return response

    def _motos(self, request: Request, service: str, operation: str) -> Response:
        policy = service == "s3" and "policy" in request.args
        if policy and request.method == "PUT":
            _replace_body(request.environ, _bucket_policy.for_moto(request.get_data()))
        _rewind(request.environ)
        try:
            application = self._moto.get_application(request.environ)
            _rewind(request.environ)
            with self._gate.shared():
                body, status, headers = run_wsgi_app(application, request.environ, buffered=True)
        except (NotImplementedError, ImportError, ValueError) as error:
            if isinstance(error, ValueError) and "backend" not in str(error).lower():
                raise
            log.debug("moto: %s", error)
            return _not_implemented(request, service, operation)
        response = Response(body, status=status, headers=headers)
        if policy and request.method == "GET" and response.status_code == 200:
            response.set_data(_bucket_policy.for_caller(response.get_data()))
        if request.method not in ("GET", "HEAD") and not operation.startswith(room.READING):
            self.changed_moto(application.service)  # type: ignore[attr-defined]
        return response

    def _account(self, request: Request, access_key: str) -> str:
        named = request.headers.get("x-moto-account-id")
        if named:
            return named
        from moto.iam.models import get_account_id_from  # late: moto's IAM takes a while to import

        return str(get_account_id_from(access_key)) if access_key.startswith(("AKIA", "ASIA")) else DEFAULT_ACCOUNT


def json_response(answer: Mapping[str, Any], *, status: int = 200) -> Response:
    """An answer of the private plane."""
    return Response(json.dumps(answer), status=status, content_type="application/json")


def _scope(request: Request) -> tuple[str, str, str]:
    found = SCOPE.search(request.headers.get("Authorization", "")) or QUERY_SCOPE.match(
        request.args.get("X-Amz-Credential", "")
    )
    return (found["key"], found["region"], found["service"].lower()) if found else ("", "", "")


def _operation(request: Request) -> str:
    target = request.headers.get("X-Amz-Target")
    return target.rsplit(".", 1)[-1] if target else _action(request)


def _action(request: Request) -> str:
    if request.args.get("Action"):
        return request.args["Action"]
    if request.headers.get("Content-Type", "").startswith("application/x-www-form-urlencoded"):
        named = re.search(rb"(?:^|&)Action=(\w+)", request.get_data(parse_form_data=False)[:4096])
        if named:
            return named[1].decode()
        return parse_qs(request.get_data().decode("utf-8", "replace")).get("Action", [""])[0]
    return ""


def _protocol(request: Request, service: str) -> str:
    if "X-Amz-Target" in request.headers or "json" in request.headers.get("Content-Type", ""):
        return "json"
    if service in ("", "s3"):
        return "rest-xml"
    try:
        return str(get_service_model(service).protocol)
    except Exception:  # noqa: BLE001 - an unknown service; query's error is understood by most callers
        return "query"


def _not_implemented(request: Request, service: str, operation: str) -> Response:
    name = f"{service or 'unknown'}.{operation or request.method + ' ' + request.path}"
    error = ServiceError("NotImplemented", f"not implemented by the embedded AWS: {name}", 501)
    return error_response(protocol=_protocol(request, service), error=error)


def _buffer_body(environ: "WSGIEnvironment") -> None:
    """Read the whole body, so that no caller's slowness is felt inside the gate and a body can be read twice."""
    if environ.get("wsgi.input_terminated"):
        body = environ["wsgi.input"].read()
        environ.pop("HTTP_TRANSFER_ENCODING", None)
        environ["wsgi.input_terminated"] = False
    else:
        body = environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
    _replace_body(environ, body)


def _replace_body(environ: "WSGIEnvironment", body: bytes) -> None:
    environ["wsgi.input"] = io.BytesIO(body)
    environ["CONTENT_LENGTH"] = str(len(body))


def _rewind(environ: "WSGIEnvironment") -> None:
    """moto reads the body from the start, whoever read it before."""
    environ["wsgi.input"].seek(0)
    environ.pop("werkzeug.request", None)
