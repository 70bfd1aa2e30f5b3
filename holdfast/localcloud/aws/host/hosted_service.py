"""
Hosting of own services: from a parsed HTTP request to a method call and back.

A service is an object with a method per API operation in snake_case (``create_stack`` for CreateStack) that takes the
API's members as keyword arguments (``StackName=...``). It returns the output shape's members as a dict, with aware UTC
datetimes, or None, and raises `ServiceError`. Requests are validated by the service model before. ``PARTS``, attribute
to class, names objects with further methods.

One object exists for each account and region. Besides operations it has:

- optionally ``state()``: everything to persist, as plain picklable data that no thread changes afterwards;
- with it ``restore(state)``: called once after construction, before any request, if there is state;
- optionally ``on_change``: set by the host; to be called after a change by a background thread;
- optionally ``close()``: stop background threads; called before the last snapshot.

Methods are called from several threads; a service has its own lock and does not hold it during calls of other services.
"""

import functools
import json
import threading
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

import botocore.exceptions
from botocore import xform_name
from botocore.utils import deep_merge
from moto.core.model import OperationModel, ServiceModel
from moto.core.parse import PROTOCOL_PARSERS
from moto.core.serialize import SerializationContext, get_serializer_class
from moto.core.utils import get_service_model
from werkzeug.wrappers import Request, Response

from holdfast.localcloud.aws.common import ServiceError
from holdfast.localcloud.aws.host.routes import Routes
from holdfast.localcloud.aws.host.validation import violations

JSON_CONTENT = "application/x-amz-json-1.1"
MODELS = Path(__file__).parent / "models"
"""Operations that are newer than the installed botocore, in the form of its extras (botocore.loaders)."""


@dataclass(frozen=True, kw_only=True)
class Caller:
    account: str
    region: str


@functools.cache
def service_model(name: str) -> ServiceModel:
    model: ServiceModel = get_service_model(name)
    for path in (MODELS / name).glob("*/service-2.sdk-extras.json"):
        deep_merge(model._service_description, json.loads(path.read_text())["merge"])
    return model


class HostedService:
    """One own service: its model, its objects (one per account and region), and their HTTP interface."""

    def __init__(
        self,
        *,
        name: str,
        load: Callable[[], type],
        create: Callable[[Caller], Any],
        beside_moto: bool = False,
        scope: str = "",
    ) -> None:
        """
        `load` imports the class, `create` makes an object of it.

        `beside_moto`: operations without a method are moto's; otherwise rejected.
        `scope`: the service's name in signatures. Default: the service's name.
        """
        self.name = name
        self.scope = scope or name
        self.beside_moto = beside_moto
        self.on_change: Callable[[], None] = lambda: None
        self._load = functools.cache(load)
        self._create = create
        self._lock = threading.Lock()
        self._instances: dict[Caller, Any] = {}

    @property
    def model(self) -> ServiceModel:
        return service_model(self.name)

    @functools.cached_property
    def routes(self) -> Routes:
        return Routes(self.model)

    def owns(self, operation: str) -> bool:
        return operation[:1].isupper() and self._holder(operation) is not None

    def at(self, caller: Caller) -> Any:
        with self._lock:
            instance = self._instances.get(caller)
            if instance is None:
                instance = self._make(caller)
            return instance

    def instances(self) -> list[Any]:
        with self._lock:
            return list(self._instances.values())

    def handle(self, *, request: Request, operation: str, caller: Caller) -> Response:
        request_id, protocol = str(uuid.uuid4()), self._protocol(request)
        try:
            operation_model = self._operation_model(operation)
            arguments = self._arguments(request, operation_model, protocol)
            result = self._method(operation, caller)(**arguments)
        except ServiceError as error:
            return error_response(protocol=protocol, error=error, request_id=request_id)
        return self._response(operation_model, result or {}, request_id, protocol)

    def state(self) -> Any:
        with self._lock:
            instances = dict(self._instances)
        return {
            (caller.account, caller.region): instance.state() if hasattr(instance, "state") else None
            for caller, instance in instances.items()
        }

    def restore(self, state: Any) -> None:
        with self._lock:
            for (account, region), kept in state.items():
                made = self._make(Caller(account=account, region=region))
                if kept is not None:
                    made.restore(kept)

    def reset(self) -> None:
        self.close()
        with self._lock:
            self._instances.clear()

    def close(self) -> None:
        for instance in self.instances():
            if hasattr(instance, "close"):
                instance.close()

    def _make(self, caller: Caller) -> Any:
        instance = self._create(caller)
        if hasattr(instance, "on_change"):
            instance.on_change = lambda: self.on_change()
        self._instances[caller] = instance
        return instance

    def _holder(self, operation: str) -> str | None:
        kind, name = self._load(), xform_name(operation)
        holders = {"": kind, **getattr(kind, "PARTS", {})}
        return next((held for held, part in holders.items() if callable(getattr(part, name, None))), None)

    def _method(self, operation: str, caller: Caller) -> Callable[..., dict[str, Any] | None]:
        service, holder = self.at(caller), self._holder(operation)
        method: Callable[..., dict[str, Any] | None] = getattr(
            getattr(service, holder) if holder else service, xform_name(operation)
        )
        return method

    def _operation_model(self, operation: str) -> OperationModel:
        try:
            model: OperationModel = self.model.operation_model(operation)
        except botocore.exceptions.OperationNotFoundError:
            raise ServiceError("InvalidAction", f"The action {operation} is not valid for this endpoint.") from None
        return model

    def _protocol(self, request: Request) -> str:
        """Return the model's first protocol, unless the request uses another."""
        if "X-Amz-Target" in request.headers:
            return "json"
        return "query" if self.model.protocol not in PROTOCOL_PARSERS else str(self.model.protocol)

    def _arguments(self, request: Request, operation_model: OperationModel, protocol: str) -> dict[str, Any]:
        shape = operation_model.input_shape
        if shape is None:
            return {}
        body = request.get_data() if protocol.endswith("json") else b""
        given = json_object(body) if protocol == "json" else None
        found = violations(shape=shape, value=given) if given is not None else []
        if not found:
            try:
                parsed: dict[str, Any] = PROTOCOL_PARSERS[protocol](operation_model).parse(
                    {
                        "method": request.method,
                        "values": request.values,
                        "headers": request.headers,
                        "body": body,
                        "url_path": request.path,
                        "url_params": self.routes.labels(request) if protocol.startswith("rest") else {},
                    }
                )
            except Exception as error:
                raise ServiceError(_validation_code(protocol), unreadable(error)) from error
            if given is None:
                found = violations(shape=shape, value=parsed)
            if not found:
                return parsed
        count = "1 validation error" if len(found) == 1 else f"{len(found)} validation errors"
        raise ServiceError(_validation_code(protocol), f"{count} detected: {'; '.join(found)}")

    def _response(
        self, operation_model: OperationModel, result: dict[str, Any], request_id: str, protocol: str
    ) -> Response:
        serializer = get_serializer_class(self.name, protocol)(
            operation_model, context=SerializationContext(request_id)
        )
        answer = serializer.serialize(result)
        headers = {**answer["headers"], "x-amzn-RequestId": request_id}
        if protocol == "json":
            headers["Content-Type"] = JSON_CONTENT
        return Response(answer["body"], status=answer["status_code"], headers=headers)


def error_response(*, protocol: str, error: ServiceError, request_id: str = "") -> Response:
    request_id = request_id or str(uuid.uuid4())
    headers = {"x-amzn-RequestId": request_id}
    if protocol in ("json", "rest-json"):
        headers |= {"Content-Type": JSON_CONTENT, "x-amzn-ErrorType": error.code}
        body = json.dumps({"__type": error.code, "message": error.message})
        return Response(body, status=error.status, headers=headers)
    code, message = escape(error.code), escape(error.message)
    kind = "Sender" if error.status < 500 else "Receiver"
    headers["Content-Type"] = "text/xml"
    detail = f"<Type>{kind}</Type><Code>{code}</Code><Message>{message}</Message>"
    if protocol == "ec2":
        body = f"<Response><Errors><Error>{detail}</Error></Errors><RequestID>{request_id}</RequestID></Response>"
    elif protocol == "rest-xml":
        body = f"<Error>{detail}<RequestId>{request_id}</RequestId></Error>"
    else:
        body = f"<ErrorResponse><Error>{detail}</Error><RequestId>{request_id}</RequestId></ErrorResponse>"
    return Response(body, status=error.status, headers=headers)


def _validation_code(protocol: str) -> str:
    return "ValidationException" if protocol.endswith("json") else "ValidationError"


def unreadable(error: Exception) -> str:
    """Return the message for a request that botocore cannot parse, without Python's words."""
    why = f": {str(error)[:200]}" if type(error) is ValueError else ""
    return f"1 validation error detected: a value is not of the type that the operation takes{why}"


def json_object(body: bytes) -> dict[str, Any]:
    try:
        given = json.loads(body or b"{}")
    except (ValueError, RecursionError) as error:
        raise ServiceError("SerializationException", f"the request body is not JSON: {error}") from error
    if not isinstance(given, dict):
        raise ServiceError("SerializationException", "the request body is not a JSON object")
    return given
