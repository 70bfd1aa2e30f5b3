"""Identifiers, attributes, tags and values of a type, from its registry schema."""

import re
from collections.abc import Mapping
from typing import Any

from holdfast.localcloud.aws.cloudformation.registry.schemas import schema


def paths(resource_type: str, key: str) -> list[str]:
    return [path.removeprefix("/properties/") for path in schema(resource_type).get(key) or []]


def attributes(resource_type: str) -> set[str]:
    """Return the attributes of Fn::GetAtt: read-only properties and echoed inputs; {} if unknown."""
    if resource_type == "AWS::CloudFormation::Stack" or resource_type.startswith("Custom::"):
        return set()  # the outputs of its template; what its function answers
    readable = {path.replace("/", ".") for path in paths(resource_type, "readOnlyProperties")}
    return readable | set(schema(resource_type).get("properties", {}))


def tag_property(resource_type: str) -> str:
    """Return the name of the property that takes tags, or ""."""
    tagging = schema(resource_type).get("tagging")
    if tagging is None:
        return "Tags" if "Tags" in schema(resource_type).get("properties", {}) else ""
    if tagging.get("taggable") is False or not tagging.get("tagOnCreate", True):
        return ""
    return str(tagging.get("tagProperty", "/properties/Tags")).removeprefix("/properties/")


def value_at(properties: Any, path: str) -> Any:
    """Return the value at ``A/B``; a list for ``A/*/B``; None if absent."""
    if not path:
        return properties
    head, _, rest = path.partition("/")
    if head == "*":
        return [value_at(item, rest) for item in properties] if isinstance(properties, list) else None
    return value_at(properties[head], rest) if isinstance(properties, dict) and head in properties else None


def replaced_by(resource_type: str, old: Mapping[str, Any], new: Mapping[str, Any]) -> list[str]:
    return [path for path in paths(resource_type, "createOnlyProperties") if value_at(old, path) != value_at(new, path)]


def coerce(value: Any, rule: Any, root: Mapping[str, Any], depth: int = 0) -> Any:
    """Convert numbers and booleans from and to text, as the schema requires."""
    if not isinstance(rule, dict) or depth > 30:
        return value
    rule = _follow(rule, root)
    kinds = rule.get("type", [])
    kinds = [kinds] if isinstance(kinds, str) else kinds
    if isinstance(value, dict):
        known, default = rule.get("properties", {}), rule.get("additionalProperties")
        return {key: coerce(item, known.get(key, default), root, depth + 1) for key, item in value.items()}
    if isinstance(value, list):
        return [coerce(item, rule.get("items"), root, depth + 1) for item in value]
    if isinstance(value, bool):
        return ("true" if value else "false") if kinds == ["string"] else value
    if isinstance(value, (int, float)):
        return str(value) if kinds == ["string"] else value
    if isinstance(value, str) and "string" not in kinds:
        return _from_text(value, kinds)
    return value


def _follow(rule: dict[str, Any], root: Mapping[str, Any]) -> dict[str, Any]:
    while "$ref" in rule:
        target: Any = root
        for part in rule["$ref"].removeprefix("#/").split("/"):
            target = target[part]
        rule = target
    return rule


def _from_text(value: str, kinds: list[str]) -> Any:
    if "boolean" in kinds and value.lower() in ("true", "false"):
        return value.lower() == "true"
    if "integer" in kinds and re.fullmatch(r"-?\d+", value):
        return int(value)
    if "number" in kinds and re.fullmatch(r"-?\d+(\.\d+)?([eE][+-]?\d+)?", value):
        return float(value)
    return value


def prepared(resource_type: str, properties: Mapping[str, Any]) -> dict[str, Any]:
    rules = schema(resource_type)
    result: dict[str, Any] = coerce(dict(properties), rules, rules)
    return result
