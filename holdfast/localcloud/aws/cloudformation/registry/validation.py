"""
Validation of properties against the registry schema, in CloudFormation's words.

The words are those of AWS's open validator (aws-cloudformation/cloudformation-resource-schema, ValidationException),
which hides values: an enumeration or pattern is named by its keyword alone.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import jsonschema
from jsonschema import validators
from jsonschema.exceptions import ValidationError
from jsonschema.protocols import Validator

from holdfast.localcloud.aws.cloudformation.registry.schemas import schema

JAVA_NAMES = {
    "string": "String",
    "integer": "Integer",
    "number": "Number",
    "boolean": "Boolean",
    "array": "JSONArray",
    "object": "JSONObject",
    "null": "Null",
}


@dataclass(frozen=True, order=True, kw_only=True)
class Violation:
    path: tuple[str, ...]
    words: str
    instance: Any = None
    """The value that was judged; None is also what a missing one is."""

    def __str__(self) -> str:
        return f"{'/'.join(('#', *self.path))}: {self.words}"


def violations(resource_type: str, properties: Mapping[str, Any], *, region: str) -> list[Violation]:
    rules = schema(resource_type, region)
    if not rules:
        return []
    found = list(_read_only(rules, properties))
    for error in _validator(resource_type, region).iter_errors(properties):
        path = tuple(str(part) for part in error.absolute_path)
        found.extend(Violation(path=path, words=words, instance=error.instance) for words in _worded(error, rules))
    return sorted({str(one): one for one in found}.values(), key=str)


def _read_only(rules: Mapping[str, Any], properties: Mapping[str, Any]) -> Iterator[Violation]:
    """Reject read-only properties; CloudFormation's words are assumed."""
    writable = set(rules.get("createOnlyProperties", ()))
    for path in set(rules.get("readOnlyProperties", ())) - writable:
        *parents, name = path.removeprefix("/properties/").split("/")
        inside: Any = properties
        for parent in parents:
            inside = inside.get(parent) if isinstance(inside, Mapping) else None
        if isinstance(inside, Mapping) and name in inside:
            words = f"extraneous key [{name}] is not permitted"
            yield Violation(path=tuple(parents), words=words, instance=inside[name])


def _worded(error: ValidationError, root: Mapping[str, Any]) -> list[str]:
    limit: Any = error.validator_value
    value: Any = error.instance
    match error.validator:
        case "required":
            return [f"required key [{key}] not found" for key in limit if key not in value]
        case "additionalProperties":
            return [f"extraneous key [{key}] is not permitted" for key in _extra(error)]
        case "type":
            desired = limit if isinstance(limit, str) else limit[0]
            return [f"expected type: {JAVA_NAMES[desired]}, found: {_java_name(value)}"]
        case "minLength" | "maxLength":
            return [f"expected {error.validator}: {limit}, actual: {len(value)}"]
        case "minItems" | "maxItems":
            side = "minimum" if error.validator == "minItems" else "maximum"
            return [f"expected {side} item count: {limit}, found: {len(value)}"]
        case "minProperties" | "maxProperties":
            return [f"{error.validator[:3]}imum size: [{limit}], found: [{len(value)}]"]
        case "uniqueItems":
            return ["array items are not unique"]
        case "anyOf" | "requiredOr":
            return [f"#: no subschema matched out of the total {len(limit)} subschemas"]
        case "oneOf" | "requiredXor":
            return [f"#: {_matching(error, root)} subschemas matched instead of one"]
        case "dependentRequired":
            return [error.message]
        case _:
            return [f"failed validation constraint for keyword [{error.validator}]"]


def _extra(error: ValidationError) -> list[str]:
    rules: Any = error.schema
    given: Any = error.instance
    patterns = rules.get("patternProperties", {})
    known = rules.get("properties", {})
    return sorted(key for key in given if key not in known and not any(re.search(pattern, key) for pattern in patterns))


def _matching(error: ValidationError, root: Mapping[str, Any]) -> int:
    value: Any = error.instance
    rules: Any = error.validator_value
    if error.validator == "requiredXor":
        return sum(key in value for key in rules)
    known = {"definitions": root.get("definitions", {})}
    return sum(_Registry({**known, **rule}).is_valid(value) for rule in rules)


def _java_name(value: Any) -> str:
    match value:
        case None:
            return "Null"
        case bool():
            return "Boolean"
        case int():
            return "Integer"
        case float():
            return "Double"
        case str():
            return "String"
        case list():
            return "JSONArray"
        case _:
            return "JSONObject"


# Keywords beyond draft 7. Java's regular expressions know what Python's do not; such a pattern is nobody's mistake.


def _pattern(_: Validator, pattern: str, instance: Any, __: Any) -> Iterator[ValidationError]:
    if not isinstance(instance, str):
        return
    try:
        matched = re.search(pattern, instance)
    except re.error:
        return
    if not matched:
        yield ValidationError("pattern")


def _dependent_required(
    _: Validator, rule: Mapping[str, list[str]], instance: Any, __: Any
) -> Iterator[ValidationError]:
    for key, needed in rule.items() if isinstance(instance, dict) else ():
        for missing in needed if key in instance else ():
            if missing not in instance:
                yield ValidationError(f"property [{missing}] is required")


def _dependent_excluded(
    _: Validator, rule: Mapping[str, list[str]], instance: Any, __: Any
) -> Iterator[ValidationError]:
    for key, barred in rule.items() if isinstance(instance, dict) else ():
        if key in instance and any(other in instance for other in barred):
            yield ValidationError("dependentExcluded")


def _required_or(_: Validator, keys: list[str], instance: Any, __: Any) -> Iterator[ValidationError]:
    if isinstance(instance, dict) and not any(key in instance for key in keys):
        yield ValidationError("requiredOr")


def _required_xor(_: Validator, keys: list[str], instance: Any, __: Any) -> Iterator[ValidationError]:
    if isinstance(instance, dict) and sum(key in instance for key in keys) != 1:
        yield ValidationError("requiredXor")


_extend: Any = validators.extend
_Registry: Any = _extend(
    jsonschema.Draft7Validator,
    {
        "pattern": _pattern,
        "dependentRequired": _dependent_required,
        "dependentExcluded": _dependent_excluded,
        "requiredOr": _required_or,
        "requiredXor": _required_xor,
    },
)


@lru_cache
def _validator(resource_type: str, region: str) -> Any:
    return _Registry(schema(resource_type, region))
