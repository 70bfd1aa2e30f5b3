"""``Custom::AWS``: a call of an AWS API as a resource (the CDK's AwsCustomResource)."""
# ruff: noqa: ARG002 - handlers share one interface; not every type needs every argument

import json
import re
from collections.abc import Iterator
from typing import Any

from botocore import xform_name
from botocore.exceptions import ClientError, UnknownServiceError

from holdfast.localcloud.aws.cloudformation.resources.custom.functions import StackFunction, resource_of
from holdfast.localcloud.aws.cloudformation.resources.handlers import (
    Made,
    Properties,
    ResourceContext,
    ResourceError,
    ResourceHandler,
    service_model,
    squeezed,
    to_shape,
)

PHYSICAL_ID = "PHYSICAL:RESOURCEID:"
OTHER_NAMES = {"cloudwatchlogs": "logs", "eventbridge": "events"}
"""Services whose JavaScript client is not named like botocore's."""


class SdkCall(ResourceHandler):
    type = "Custom::AWS"

    def create(self, context: ResourceContext, properties: Properties) -> Made:
        function = StackFunction(context, properties)
        return self._call(context, properties.get("Create"), Made(physical_id=context.name()), function)

    def update(self, context: ResourceContext, made: Made, properties: Properties, old: Properties) -> Made:
        return self._call(context, properties.get("Update"), made, StackFunction(context, properties))

    def delete(self, context: ResourceContext, made: Made, properties: Properties) -> None:
        self._call(context, properties.get("Delete"), made, StackFunction(context, properties))

    def _call(self, context: ResourceContext, given: Any, made: Made, function: StackFunction) -> Made:
        if not given:
            return made
        call = json.loads(given) if isinstance(given, str) else given
        if "assumedRoleArn" in call or ("region" in call and call["region"] != context.region):
            raise ResourceError(f"{self.type}: the embedded AWS calls in the stack's own account and region only")
        service, operation = _named(call)
        model = service_model(service).operation_model(operation)
        signed = model.service_model.signing_name
        function.must(f"{signed}:{operation}", resource_of(service, call.get("parameters", {}), context))
        parameters = to_shape(model.input_shape, _filled(call.get("parameters", {}), made.physical_id))
        try:
            answer = getattr(context.client(service), xform_name(operation))(**parameters)
        except ClientError as error:
            pattern = call.get("ignoreErrorCodesMatching")
            if pattern and re.search(pattern, error.response["Error"]["Code"]):
                return made
            raise
        answer.pop("ResponseMetadata", None)
        flat = {key: str(value) for key, value in _flattened(answer)}
        paths = call.get("outputPaths")
        reported = flat if paths is None else {k: v for k, v in flat.items() if any(k.startswith(p) for p in paths)}
        desired = call.get("physicalResourceId", {})
        identity = desired.get("id") or flat.get(desired.get("responsePath", ""), made.physical_id)
        return Made(physical_id=identity, attributes=reported)


def _named(call: Properties) -> tuple[str, str]:
    named = call["service"].removeprefix("@aws-sdk/client-").lower().replace("-", "")
    service = OTHER_NAMES.get(named, named)
    try:
        known = {squeezed(name): name for name in service_model(service).operation_names}
    except UnknownServiceError:
        raise ResourceError(f"Custom::AWS: the embedded AWS does not know the service {call['service']}") from None
    desired = squeezed(call["action"].removesuffix("Command"))
    if desired not in known:
        raise ResourceError(f"Custom::AWS: the service {service} has no operation {call['action']}")
    return service, known[desired]


def _filled(value: Any, physical_id: str) -> Any:
    if isinstance(value, dict):
        return {key: _filled(item, physical_id) for key, item in value.items()}
    if isinstance(value, list):
        return [_filled(item, physical_id) for item in value]
    return physical_id if value == PHYSICAL_ID else value


def _flattened(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict):
        for key, item in value.items():
            yield from _flattened(item, f"{path}.{key}" if path else key)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _flattened(item, f"{path}.{index}")
    else:
        yield path, value
