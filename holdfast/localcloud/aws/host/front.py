"""
Front: routing of a request to an own service or moto, and what surrounds its answer.

Requests from a socket pass the guard first. Service and region come from the signature's credential scope, the
operation from X-Amz-Target or Action. Requests to moto run inside the gate; possible changes are reported to the
persistence. The private plane is under ``/_holdfast/``, for the home's owner.
"""

import contextlib
import io
import json
import logging
import re
import sys
import time
import traceback
import zlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs

from moto.core.utils import get_service_model
from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
from werkzeug.exceptions import HTTPException
from werkzeug.test import run_wsgi_app
from werkzeug.wrappers import Request, Response

from holdfast.localcloud.aws.clients import DEFAULT_ACCOUNT
from holdfast.localcloud.aws.common import PRINCIPAL_HEADER, NotOurs, ServiceError, acting_for, root_of
from holdfast.localcloud.aws.guard import (
    Authorizer,
    Budget,
    CallerIdentity,
    Callers,
    ceiling_of,
    foreign,
    read_body,
    signed,
    tags_of,
    verify,
)
from holdfast.localcloud.aws.host import bucket_policies
from holdfast.localcloud.aws.host.common_errors import for_service
from holdfast.localcloud.aws.host.direct import OWN
from holdfast.localcloud.aws.host.hosted_service import Caller, HostedService, error_response
from holdfast.localcloud.aws.host.request_shapes import cannot_take, must_fit
from holdfast.localcloud.aws.host.sts import SERVICE_HEADER, keep_tags, owner_identity
from holdfast.localcloud.aws.ssm import CHANNEL_PATH, Sessions, serve_channel
from holdfast.localcloud.aws.state import READING, Gate, is_change

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIEnvironment

log = logging.getLogger(__name__)

DEFAULT_REGION = "us-west-2"
PRIVATE = "/_holdfast/"
LARGEST_UNPACKED = 16 << 20
HEALTH = ("GET", "/_holdfast/health")
NOT_SERVED = ("/moto-api", "/latest/meta-data/", "/latest/api/", "/favicon.ico")
"""moto's own plane and its instance metadata, which it serves to anybody."""
FORM = "application/x-www-form-urlencoded"
POLICIES = ("iam", "s3")
"""Services whose changes may change what roles may do."""


class Front:
    def __init__(
        self,
        *,
        services: Mapping[str, HostedService],
        private: Callable[[Request], Response],
        sessions: Sessions,
        gate: Gate,
        callers: Callers,
        judge: Authorizer,
    ) -> None:
        self.ready = False
        """Until then only own services answer: unrestored resources must not seem deleted."""
        self.changed: Callable[[str], None] = lambda _name: None
        self.changed_moto: Callable[[str], None] = lambda _name: None
        self.refusal: Callable[..., str] = lambda **_: ""
        """Returns why a change of so many bytes cannot be saved, or ""."""
        self._services = services
        self._private = private
        self._sessions = sessions
        self._gate = gate
        self._callers = callers
        self._judge = judge
        self._budget = Budget()
        self._moto = DomainDispatcherApplication(create_backend_app)

    def __call__(self, environ: "WSGIEnvironment", start_response: "StartResponse") -> Iterable[bytes]:
        started = time.monotonic()
        request = Request(environ)
        with contextlib.ExitStack() as until_answered:
            try:
                response = self._guarded(request, until_answered)
            except ServiceError as error:
                response = _refusal(request, error)
            except Exception as error:  # noqa: BLE001 - every request gets an answer
                response = _failure(request, error)
        for name in [name for name in response.headers.keys() if name.lower().startswith("access-control-")]:  # noqa: SIM118
            response.headers.remove(name)
        if log.isEnabledFor(logging.DEBUG):
            what = request.headers.get("X-Amz-Target") or request.args.get("Action") or request.path
            took = (time.monotonic() - started) * 1000
            log.debug("%s %s %s %.0f ms", request.method, what, response.status_code, took)
        return response(environ, start_response)

    def _guarded(self, request: Request, until_answered: contextlib.ExitStack) -> Response:
        environ = request.environ
        if environ.get(OWN):
            return self._answer(request, _Scope.of(request), None)
        why = foreign(request.headers)
        if why:
            raise ServiceError("AccessDenied", why, 403)
        if (request.method, request.path) == HEALTH:
            environ["holdfast.received"]()
            return self._private(request)
        if environ["holdfast.full"]:
            raise ServiceError("ServiceUnavailable", "too many requests are being answered; try again", 503)
        if request.path.startswith(CHANNEL_PATH):
            environ["holdfast.received"]()
            serve_channel(environ, self._sessions)
            return _TakenOver()
        if request.path.startswith(NOT_SERVED):
            raise ServiceError("NotFound", f"not found: {request.method} {request.path}", 404)
        signature = signed(request.headers, request.args)
        who = self._callers.find(signature.key_id)
        environ["holdfast.known"]()
        part = until_answered.enter_context(self._budget.part())
        body = read_body(environ, ceiling=ceiling_of(signature.service), part=part)
        environ["holdfast.received"]()
        verify(environ, signature, who.keys, body)
        _replace_body(environ, body)
        # moto finds a request's service by this header alone, and by much else where it is missing or in another order.
        environ["HTTP_AUTHORIZATION"] = signature.as_header()
        if who.role:
            environ.pop("HTTP_X_MOTO_ACCOUNT_ID", None)
        scope = _Scope(key=signature.key_id, region=signature.region, service=signature.service)
        if scope.service != "s3":
            _unpack(environ, body)
        return self._answer(request, scope, who)

    def _answer(self, request: Request, scope: "_Scope", who: CallerIdentity | None) -> Response:
        if request.path.startswith(PRIVATE):
            if who is not None and who.role:
                raise ServiceError("AccessDenied", "the private API is for the owner of the home", 403)
            return self._private(request)
        service, region = scope.service, scope.region
        hosted = self._services.get(service)
        operation = _operation(request) or (hosted.routes.operation(request) if hosted is not None else "")
        if not self.ready and not (who is None or who.own):
            raise ServiceError("ServiceUnavailable", "the embedded AWS is restoring its state; try again", 503)
        if who is not None and who.role:
            labels = hosted.routes.labels(request) if hosted is not None else {}
            self._judge.allow(who, request, service=service, region=region, operation=operation, labels=labels)
        elif (service, operation) == ("sts", "GetCallerIdentity"):
            return owner_identity(self._account(request, scope.key))
        elif who is not None and not who.own and (service, operation) == ("sts", "AssumeRole"):
            place = {"account": self._account(request, scope.key), "region": region}
            self._judge.must_exist(request, **place)
            if SERVICE_HEADER in request.headers:
                self._judge.must_trust(request, request.headers[SERVICE_HEADER], **place)
        unkept = self._unkept(request, operation)
        if unkept is not None:
            raise unkept
        if hosted is not None and operation:
            if hosted.owns(operation):
                caller = Caller(account=self._account(request, scope.key), region=region or DEFAULT_REGION)
                try:
                    with acting_for(_principal(request, who, caller)):
                        return self._ours(hosted, request, operation, caller)
                except NotOurs:
                    pass
            elif not hosted.beside_moto:
                return _not_implemented(request, service, operation)
        elif hosted is not None and not hosted.beside_moto:
            return _not_implemented(request, service, "")
        request.environ["HTTP_X_MOTO_ACCOUNT_ID"] = self._account(request, scope.key)  # or moto looks for it everywhere
        tags = tags_of(request) if (service, operation) == ("sts", "AssumeRole") else {}
        response = self._motos(request, service, operation)
        if (service, operation) == ("sts", "AssumeRole"):
            keep_tags(response, given=tags, inherited=who.tags if who is not None else {})
        if service in POLICIES and request.method not in ("GET", "HEAD") and not operation.startswith(READING):
            self._judge.changed()
        return response

    def _unkept(self, request: Request, operation: str) -> ServiceError | None:
        if not is_change(method=request.method, operation=operation, query=request.args):
            return None
        why = self.refusal(desired=request.content_length or 0)
        return ServiceError("InsufficientStorage", f"{why}; nothing was changed", 507) if why else None

    def _ours(self, hosted: HostedService, request: Request, operation: str, caller: Caller) -> Response:
        response = hosted.handle(request=request, operation=operation, caller=caller)
        if not operation.startswith(READING):
            self.changed(hosted.name)
        return response

    def _motos(self, request: Request, service: str, operation: str) -> Response:
        policy = service == "s3" and "policy" in request.args
        if policy and request.method == "PUT":
            _replace_body(request.environ, bucket_policies.for_moto(request.get_data()))
        _rewind(request.environ)
        try:
            application = self._moto.get_application(request.environ)
            names = (application.service, service)  # type: ignore[attr-defined]
            must_fit(request, names=names, operation=operation)
            _rewind(request.environ)
            with self._gate.shared():
                body, status, headers = run_wsgi_app(application, request.environ, buffered=True)
        except ServiceError:
            raise
        except Exception as error:  # noqa: BLE001 - moto fails in any way at what no SDK would send
            if isinstance(error, NotImplementedError | ImportError) or _is_no_backend(error):
                log.debug("moto: %s", error)
                return _not_implemented(request, service, operation)
            # A line and no more: whoever may ask may ask often, and the log is on a disk.
            what, where = f"{type(error).__name__}: {str(error)[:200]}", traceback.extract_tb(error.__traceback__)[-1]
            place = f"{where.filename.rpartition('site-packages/')[2]}:{where.lineno}"
            log.warning("moto failed at %s %s: %s at %s", service, operation or request.method, what, place)
            protocol = _protocol(request, service)
            return error_response(protocol=protocol, error=cannot_take(protocol, operation))
        response = Response(body, status=status, headers=headers)
        if policy and request.method == "GET" and response.status_code == 200:
            response.set_data(bucket_policies.for_caller(response.get_data()))
        if request.method not in ("GET", "HEAD") and not operation.startswith(READING):
            self.changed_moto(application.service)  # type: ignore[attr-defined]
        return response

    def _account(self, request: Request, access_key: str) -> str:
        named = request.headers.get("x-moto-account-id")
        if named:
            return named
        # It takes a while to import, has no keys before it is, and is among the modules while it is not whole yet.
        backends = getattr(sys.modules.get("moto.iam.models"), "iam_backends", None)
        # Not moto's own way, which makes a backend of every partition, each with AWS's policies, to look for one key.
        for account, partitions in list(backends.items()) if backends is not None else ():
            if any(access_key in backend.access_keys for backend in list(partitions.values())):
                return str(account)
        return DEFAULT_ACCOUNT


def json_response(answer: Mapping[str, Any], *, status: int = 200) -> Response:
    return Response(json.dumps(answer), status=status, content_type="application/json")


class _TakenOver(Response):
    """Answer of a request whose connection was used for something else."""

    def __call__(self, _environ: "WSGIEnvironment", _start_response: "StartResponse") -> Iterable[bytes]:
        raise ConnectionError


@dataclass(frozen=True, kw_only=True)
class _Scope:
    key: str
    region: str
    service: str

    @classmethod
    def of(cls, request: Request) -> "_Scope":
        signature = signed(request.headers, request.args)
        return cls(key=signature.key_id, region=signature.region, service=signature.service)


def _principal(request: Request, who: CallerIdentity | None, caller: Caller) -> str:
    if who is not None and not who.own:
        return who.role or root_of(caller.account)
    return str(request.headers.get(PRINCIPAL_HEADER, "")) or root_of(caller.account)


def _is_no_backend(error: Exception) -> bool:
    return isinstance(error, ValueError) and "backend" in str(error).lower()


def _refusal(request: Request, error: ServiceError) -> Response:
    try:
        service = _Scope.of(request).service
    except ServiceError:
        service = ""
    protocol = _protocol(request, service)
    return error_response(protocol=protocol, error=for_service(error, service=service, protocol=protocol))


def _failure(request: Request, error: Exception) -> Response:
    if isinstance(error, HTTPException) and error.code and error.code < 500:
        return _refusal(request, ServiceError("InvalidRequest", str(error.description), error.code))
    if isinstance(error, RecursionError | UnicodeError):
        log.debug("%s %s: %s", request.method, request.path, error)
        return _refusal(
            request, ServiceError("InvalidRequest", "the request cannot be parsed: it is nested too deeply")
        )
    log.error("%s %s failed", request.method, request.path, exc_info=error)
    return _refusal(request, ServiceError("InternalFailure", f"{type(error).__name__}: {error}", 500))


def _operation(request: Request) -> str:
    target = request.headers.get("X-Amz-Target")
    return target.rsplit(".", 1)[-1] if target else _action(request)


def _action(request: Request) -> str:
    if request.args.get("Action"):
        return request.args["Action"]
    if request.headers.get("Content-Type", "").startswith(FORM):
        named = re.search(rb"(?:^|&)Action=(\w+)", request.get_data(parse_form_data=False)[:4096])
        if named:
            return named[1].decode()
        return parse_qs(request.get_data().decode("utf-8", "replace")).get("Action", [""])[0]
    return ""


def _protocol(request: Request, service: str) -> str:
    if "X-Amz-Target" in request.headers or "json" in request.headers.get("Content-Type", ""):
        return "json"
    if service == "" and request.headers.get("Content-Type", "").startswith(FORM):
        return "query"
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


def _unpack(environ: "WSGIEnvironment", body: bytes) -> None:
    if environ.get("HTTP_CONTENT_ENCODING", "").strip().lower() != "gzip":
        return
    unpacker = zlib.decompressobj(zlib.MAX_WBITS | 16)
    try:
        plain = unpacker.decompress(body, LARGEST_UNPACKED)
    except zlib.error as error:
        raise ServiceError("InvalidRequest", f"the body is not gzip: {error}") from None
    if unpacker.unconsumed_tail:
        raise ServiceError("EntityTooLarge", f"a body may have {LARGEST_UNPACKED} bytes when unpacked", 413)
    del environ["HTTP_CONTENT_ENCODING"]
    _replace_body(environ, plain)


def _replace_body(environ: "WSGIEnvironment", body: bytes) -> None:
    environ["wsgi.input"] = io.BytesIO(body)
    environ["CONTENT_LENGTH"] = str(len(body))
    environ.pop("HTTP_TRANSFER_ENCODING", None)


def _rewind(environ: "WSGIEnvironment") -> None:
    """Rewind the input: moto reads it from the start."""
    environ["wsgi.input"].seek(0)
    environ.pop("werkzeug.request", None)
