"""Mapping of CloudFormation properties to API members by name and shape. Pure, over botocore's shapes."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from botocore.model import ListShape, MapShape, Shape, StructureShape


def squeezed(name: str) -> str:
    """Return a name without case and punctuation, so that ``KMSKeyId`` equals ``kmsKeyId``."""
    return re.sub(r"[^a-z0-9]", "", name.lower())


def members(shape: StructureShape) -> dict[str, str]:
    return {squeezed(name): name for name in shape.members}


@dataclass
class LostProperties:
    """Paths of properties that a shape has no member for."""

    paths: list[str] = field(default_factory=list)


def to_shape(shape: Shape, value: Any, lost: LostProperties | None = None, path: str = "") -> Any:
    """Convert a value to the API's shape. Unknown properties are left out and added to ``lost``."""
    if isinstance(shape, StructureShape):
        return _to_structure(shape, value, lost, path) if isinstance(value, Mapping) else value
    if isinstance(shape, ListShape):
        return _to_list(shape, value, lost, path)
    if isinstance(shape, MapShape):
        return _to_map(shape, value, lost, path)
    return _to_scalar(shape.type_name, value)


def _to_structure(
    shape: StructureShape, value: Mapping[str, Any], lost: LostProperties | None, path: str
) -> dict[str, Any]:
    if shape.is_document_type:
        return dict(value)
    known, result = members(shape), {}
    for key, item in value.items():
        name = known.get(squeezed(key))
        if name is not None:
            result[name] = to_shape(shape.members[name], item, lost, f"{path}/{key}")
        elif lost is not None:
            lost.paths.append(f"{path}/{key}".lstrip("/"))
    return result


def _to_list(shape: ListShape, value: Any, lost: LostProperties | None, path: str) -> Any:
    if isinstance(value, Mapping) and isinstance(shape.member, StructureShape):
        value = [{"Key": key, "Value": item} for key, item in value.items()]
    if not isinstance(value, list):
        value = [value]
    if isinstance(shape.member, StructureShape) and {"TagKey", "TagValue"} <= shape.member.members.keys():
        value = [{"TagKey": item["Key"], "TagValue": item["Value"]} for item in value]
    return [to_shape(shape.member, item, lost, f"{path}/*") for item in value]


def _to_map(shape: MapShape, value: Any, lost: LostProperties | None, path: str) -> Any:
    if isinstance(value, list):
        return {item["Key"]: str(item["Value"]) for item in value}
    if isinstance(value, Mapping):
        return {key: to_shape(shape.value, item, lost, f"{path}/{key}") for key, item in value.items()}
    return value


def _to_scalar(kind: str, value: Any) -> Any:
    if kind == "string" and isinstance(value, (dict, list)):
        return json.dumps(value)
    if kind == "string" and not isinstance(value, str):
        return ("true" if value else "false") if isinstance(value, bool) else str(value)
    if kind in ("integer", "long") and isinstance(value, (str, float)):
        return int(value)
    if kind in ("float", "double") and isinstance(value, (str, int)):
        return float(value)
    if kind == "blob" and isinstance(value, str):
        return value.encode()
    if kind == "boolean" and isinstance(value, str):
        return value.lower() == "true"
    return value


def pick(described: Mapping[str, Any], *names: str) -> Any:
    """Return the first member with one of the names, ignoring case, or None."""
    known = {squeezed(key): value for key, value in described.items()}
    return next((known[squeezed(name)] for name in names if known.get(squeezed(name)) is not None), None)


def unwrapped(response: Mapping[str, Any], noun: str) -> dict[str, Any]:
    """Return the described object of a response: the structure or first list element that it holds, or the response."""
    body = {key: value for key, value in response.items() if key not in ("ResponseMetadata", "NextToken", "nextToken")}
    desired = squeezed(noun)
    named = [value for key, value in body.items() if desired in squeezed(key) or squeezed(key).rstrip("s") in desired]
    for value in named or body.values():
        if isinstance(value, list) and value and isinstance(value[0], Mapping):
            return dict(value[0])
        if isinstance(value, Mapping) and value:
            return dict(value)
    return body
