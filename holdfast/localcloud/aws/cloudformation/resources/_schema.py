"""
What the CloudFormation registry knows about a type; the schemas ship inside cfn-lint.

Also prepares and judges properties as CloudFormation does before it calls a handler.
"""

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any

import jsonschema
from jsonschema import validators
from jsonschema.exceptions import ValidationError
from jsonschema.protocols import Validator

SCHEMA_REGIONS = ("us-west-2", "us-east-1")
"""Types differ by region only in enumerations that the services themselves check; the first lacks a few."""

LAGGING = frozenset({"AWS::SageMaker::Cluster"})
"""Types whose enumerations are behind the API's (MultiNodeTrainingValidation is missing); the service judges them."""


@lru_cache
def schema(resource_type: str) -> dict[str, Any]:
    """The registry schema of a type; {} for types outside the registry (Custom::*, AWS::CDK::*)."""
    from cfnlint.schema import ResourceNotFoundError  # the import costs two seconds
    from cfnlint.schema.manager import PROVIDER_SCHEMA_MANAGER

    if not resource_type.startswith("AWS::"):
        return {}
    for region in SCHEMA_REGIONS:
        try:
            found: dict[str, Any] = PROVIDER_SCHEMA_MANAGER.get_resource_schema(region, resource_type).schema
        except ResourceNotFoundError:
            continue
        return found
    return {}


def paths(resource_type: str, key: str) -> list[str]:
    """Property paths of a schema section: ``/properties/A/B`` becomes ``A/B``."""
    return [path.removeprefix("/properties/") for path in schema(resource_type).get(key) or []]


def attributes(resource_type: str) -> set[str]:
    """What Fn::GetAtt accepts: read-only properties, and the inputs that come back as they are; {} when unknown."""
    if resource_type == "AWS::CloudFormation::Stack":
        return set()  # the outputs of its template
    readable = {path.replace("/", ".") for path in paths(resource_type, "readOnlyProperties")}
    return readable | set(schema(resource_type).get("properties", {}))


def tag_property(resource_type: str) -> str:
    """Name of the property that takes tags; "" when the type has none."""
    tagging = schema(resource_type).get("tagging")
    if tagging is None:
        return "Tags" if "Tags" in schema(resource_type).get("properties", {}) else ""
    if tagging.get("taggable") is False or not tagging.get("tagOnCreate", True):
        return ""
    return str(tagging.get("tagProperty", "/properties/Tags")).removeprefix("/properties/")


def value_at(properties: Any, path: str) -> Any:
    """The value at ``A/B``; a list of values for ``A/*/B``; None when absent."""
    if not path:
        return properties
    head, _, rest = path.partition("/")
    if head == "*":
        return [value_at(item, rest) for item in properties] if isinstance(properties, list) else None
    return value_at(properties[head], rest) if isinstance(properties, dict) and head in properties else None


def replaced_by(resource_type: str, old: Mapping[str, Any], new: Mapping[str, Any]) -> list[str]:
    """Create-only properties that differ, so that only a new resource can have them."""
    return [path for path in paths(resource_type, "createOnlyProperties") if value_at(old, path) != value_at(new, path)]


def coerce(value: Any, rule: Any, root: Mapping[str, Any], depth: int = 0) -> Any:
    """Numbers and booleans written as text become what the schema says, and the other way round."""
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
    """The properties with the types of the schema."""
    rules = schema(resource_type)
    result: dict[str, Any] = coerce(dict(properties), rules, rules)
    return result


def violations(resource_type: str, properties: Mapping[str, Any]) -> list[str]:
    """Everything the schema has against the properties, in CloudFormation's words."""
    rules = schema(resource_type)
    if not rules:
        return []
    found = [
        f"#/{path}: read-only property, remove it"
        for path in paths(resource_type, "readOnlyProperties")
        if "/" not in path and path in properties
    ]
    errors = _validator(resource_type).iter_errors(properties)
    found.extend(_worded(error) for error in errors if resource_type not in LAGGING or error.validator != "enum")
    return sorted(set(found))


def _worded(error: Any) -> str:
    where = "/".join(["#", *(str(part) for part in error.absolute_path)])
    match error.validator:
        case "required":
            missing = [key for key in error.validator_value if key not in error.instance]
            return "; ".join(f"{where}: required key [{key}] not found" for key in missing)
        case "additionalProperties":
            extra = sorted(set(error.instance) - set(error.schema.get("properties", {})))
            return "; ".join(f"{where}: extraneous key [{key}] is not permitted" for key in extra)
        case "enum":
            return f"{where}: #: {error.instance} is not a valid enum value; allowed: {error.validator_value}"
        case "type":
            return f"{where}: expected type: {error.validator_value}, found: {type(error.instance).__name__}"
        case "pattern":
            return f"{where}: failed validation constraint for keyword [pattern]: {error.validator_value}"
        case _:
            return f"{where}: {error.message[:300]}"


def _pattern(_: Validator, pattern: str, instance: Any, __: Any) -> Iterator[ValidationError]:
    if not isinstance(instance, str):
        return
    try:
        matched = re.search(pattern, instance)
    except re.error:  # the registry's patterns are Java's
        return
    if not matched:
        yield ValidationError(f"{instance!r} does not match {pattern!r}")


@lru_cache
def _validator(resource_type: str) -> Validator:
    extend: Any = validators.extend
    made: Validator = extend(jsonschema.Draft7Validator, {"pattern": _pattern})(schema(resource_type))
    return made
