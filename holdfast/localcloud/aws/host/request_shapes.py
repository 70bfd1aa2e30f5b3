"""
Validation of requests to moto by their operation's shape, as AWS rejects them.

moto trusts SDKs to have checked members and types. A request that still makes moto fail is rejected by `cannot_take`;
the log has moto's error.
"""

from collections.abc import Iterable
from typing import Any

from moto.core.model import ServiceModel
from moto.core.parse import PROTOCOL_PARSERS
from moto.core.utils import get_service_model
from werkzeug.wrappers import Request

from holdfast.localcloud.aws.common import ServiceError
from holdfast.localcloud.aws.host.hosted_service import json_object, unreadable
from holdfast.localcloud.aws.host.validation import violations

NOT_VALID = {"json": "ValidationException", "rest-json": "ValidationException", "ec2": "InvalidParameterValue"}
READ = ("json", "query", "ec2")
"""Protocols parsed here: moto parses the paths of the others."""


def must_fit(request: Request, *, names: Iterable[str], operation: str) -> None:
    """Reject missing members and wrong types. Raise ServiceError in AWS's words."""
    model = next((each for each in (_model(name, request) for name in names) if each is not None), None)
    if model is None or operation not in model.operation_names:
        return
    shape = model.operation_model(operation).input_shape
    protocol = _protocol(request, model)
    if shape is None or protocol not in READ:
        return
    given = json_object(request.get_data()) if protocol == "json" else _form(request, model, operation, protocol)
    wrong = list(violations(shape=shape, value=given, closely=False))
    if wrong:
        count = "1 validation error" if len(wrong) == 1 else f"{len(wrong)} validation errors"
        code = NOT_VALID.get(protocol, "ValidationError")
        raise ServiceError(code, f"{count} detected: {'; '.join(wrong)}")


def cannot_take(protocol: str, operation: str) -> ServiceError:
    what = f"{operation} with these values" if operation else "this request"
    message = f"1 validation error detected: the embedded AWS cannot process {what}; see log/aws.log"
    code = "InvalidRequest" if protocol == "rest-xml" else NOT_VALID.get(protocol, "ValidationError")
    return ServiceError(code, message)


def _model(name: str, request: Request) -> ServiceModel | None:
    try:
        model: ServiceModel = get_service_model(name)
    except Exception:  # noqa: BLE001 - botocore knows no such service
        return None
    target = request.headers.get("X-Amz-Target")
    if target:
        return model if target.rpartition(".")[0] == model.metadata.get("targetPrefix") else None
    return model if request.values.get("Version", model.api_version) == model.api_version else None


def _protocol(request: Request, model: ServiceModel) -> str:
    return "json" if "X-Amz-Target" in request.headers else str(model.metadata["protocol"])


def _form(request: Request, model: ServiceModel, operation: str, protocol: str) -> dict[str, Any]:
    parser = PROTOCOL_PARSERS[protocol](model.operation_model(operation))
    try:
        found: dict[str, Any] = parser.parse(
            {
                "method": request.method,
                "values": request.values,
                "headers": request.headers,
                "body": b"",
                "url_path": request.path,
                "url_params": {},
            }
        )
    except Exception as error:  # noqa: BLE001 - it fails in many ways at what is no such form
        raise ServiceError("MalformedQueryString", unreadable(error)) from None
    return found
