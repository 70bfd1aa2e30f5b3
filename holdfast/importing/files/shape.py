"""Validation of a request by names and types of CreateCluster's model in botocore."""

from collections.abc import Iterator
from functools import cache
from typing import Any

from holdfast.importing.files.json import is_finite

KINDS: dict[str, tuple[type | tuple[type, ...], str]] = {
    "structure": (dict, "an object"),
    "list": (list, "a list"),
    "map": (dict, "an object"),
    "string": (str, "a string"),
    "integer": (int, "a whole number"),
    "boolean": (bool, "true or false"),
    "timestamp": ((str, int, float), "a time"),
}
FOR_THE_CALLER = frozenset({"ClusterName"})
"""Required members that can be given apart, as an option."""


@cache
def request_shape() -> Any:
    from botocore.loaders import Loader
    from botocore.model import ServiceModel

    model = ServiceModel(Loader().load_service_model("sagemaker", "service-2"), "sagemaker")
    return model.operation_model("CreateCluster").input_shape


def problems(value: Any, shape: Any | None = None, *, path: str = "") -> Iterator[str]:
    """Yield values of wrong types; ``shape`` defaults to the whole request, ``path`` is for messages."""
    shape = shape or request_shape()
    if not _is_of_kind(value, shape.type_name):
        yield f"{path or 'the request'} is {shown_kind(value)}; allowed: {KINDS[shape.type_name][1]}"
    elif shape.type_name == "structure":
        yield from _members(value, shape, path)
    elif shape.type_name == "list":
        for index, item in enumerate(value):
            yield from problems(item, shape.member, path=f"{path}[{index}]")
    elif shape.type_name == "map":
        for key, item in value.items():
            yield from problems(item, shape.value, path=f"{path}.{key}")


def _is_of_kind(value: Any, type_name: str) -> bool:
    if isinstance(value, bool) and type_name != "boolean":
        return False
    return isinstance(value, KINDS[type_name][0]) and (not isinstance(value, float) or is_finite(value))


def _members(value: dict[str, Any], shape: Any, path: str) -> Iterator[str]:
    for name in shape.required_members:
        if name not in value and not (not path and name in FOR_THE_CALLER):
            yield f"{path or 'the request'} has no {name}, which CreateCluster requires"
    for name, member in shape.members.items():
        if name in value:
            yield from problems(value[name], member, path=f"{path}.{name}" if path else name)


def shown_kind(value: Any) -> str:
    if isinstance(value, dict | list):
        return "an object" if isinstance(value, dict) else "a list"
    text = "null" if value is None else str(value).lower() if isinstance(value, bool) else repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
