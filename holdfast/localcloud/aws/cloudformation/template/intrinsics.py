"""Resolution of template values: intrinsic functions, pseudo parameters, conditions, rules. Pure."""

import base64
import ipaddress
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from holdfast.localcloud.aws.cloudformation.template.parsing import TemplateError

KNOWN_AFTER_APPLY = "{{changeSet:KNOWN_AFTER_APPLY}}"
"""AWS's value in a change set for what only the deployment reveals."""

DYNAMIC = re.compile(r"\{\{resolve:([^:}]+):([^}]+)\}\}")


class _NoValue: ...


NO_VALUE = _NoValue()


@dataclass(kw_only=True)
class TemplateScope:
    pseudo: Mapping[str, Any]
    parameters: Mapping[str, Any]
    mappings: Mapping[str, Any]
    conditions: Mapping[str, Any]
    reference: Callable[[str], Any]
    attribute: Callable[[str, str], Any]
    imported: Callable[[str], str]
    dynamic: Callable[[str, str], str]
    zones: Callable[[], list[str]]
    _truth: dict[str, bool] = field(default_factory=dict)

    def resolve(self, value: Any) -> Any:
        result = _resolve(self, value)
        return None if result is NO_VALUE else result

    def holds(self, condition: str) -> bool:
        if condition not in self._truth:
            if condition not in self.conditions:
                raise TemplateError(f"Template error: condition {condition} is not defined")
            self._truth[condition] = _truth(self, self.conditions[condition])
        return self._truth[condition]


def failed_rules(rules: Mapping[str, Any], scope: TemplateScope) -> list[str]:
    failures = []
    for name, rule in rules.items():
        if "RuleCondition" in rule and not _truth(scope, rule["RuleCondition"]):
            continue
        failures += [
            assertion.get("AssertDescription", name)
            for assertion in rule.get("Assertions", [])
            if not _truth(scope, assertion["Assert"])
        ]
    return failures


def _resolve(scope: TemplateScope, value: Any) -> Any:
    match value:
        case str():
            return _dynamic(scope, value) if "{{resolve:" in value else value
        case list():
            return [item for item in (_resolve(scope, entry) for entry in value) if item is not NO_VALUE]
        case dict():
            if len(value) == 1:
                key, argument = next(iter(value.items()))
                if key in _FUNCTIONS:
                    return _FUNCTIONS[key](scope, argument)
                if isinstance(key, str) and key.startswith("Fn::"):
                    raise TemplateError(f"Template error: {key} is not supported")
            resolved = ((key, _resolve(scope, item)) for key, item in value.items())
            return {key: item for key, item in resolved if item is not NO_VALUE}
        case _:
            return value


def _dynamic(scope: TemplateScope, text: str) -> str:
    if KNOWN_AFTER_APPLY in text:
        return text
    return DYNAMIC.sub(lambda match: scope.dynamic(match[1], match[2]), text)


def _text(value: Any, *, where: str) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (str, int, float)):
        return str(value)
    raise TemplateError(f"Template error: every value of {where} must be a string, got {value!r}")


def _ref(scope: TemplateScope, name: Any) -> Any:
    if name == "AWS::NoValue":
        return NO_VALUE
    for known in (scope.pseudo, scope.parameters):
        if name in known:
            return known[name]
    return scope.reference(name)


def _get_att(scope: TemplateScope, argument: Any) -> Any:
    parts = argument.split(".", 1) if isinstance(argument, str) else argument
    if not isinstance(parts, list) or len(parts) != 2:
        raise TemplateError("Template error: every Fn::GetAtt object requires two non-empty parameters")
    return scope.attribute(parts[0], str(_resolve(scope, parts[1])))


def _sub(scope: TemplateScope, argument: Any) -> str:
    text, given = (argument, {}) if isinstance(argument, str) else (argument[0], argument[1])
    names = {name: _resolve(scope, value) for name, value in given.items()}

    def put(match: re.Match[str]) -> str:
        name = match[1].strip()
        if name.startswith("!"):
            return "${" + name[1:] + "}"
        if name in names:
            return _text(names[name], where="Fn::Sub")
        if "." in name:
            return _text(_get_att(scope, name), where="Fn::Sub")
        return _text(_ref(scope, name), where="Fn::Sub")

    return _dynamic(scope, re.sub(r"\$\{([^}]*)\}", put, text))


def _join(scope: TemplateScope, argument: Any) -> str:
    if not isinstance(argument, list) or len(argument) != 2:
        raise TemplateError(
            "Template error: every Fn::Join object requires two parameters, "
            "(1) a string delimiter and (2) a list of strings to be joined"
        )
    items = _resolve(scope, argument[1])
    if not isinstance(items, list):
        items = [items]
    return _dynamic(scope, str(argument[0]).join(_text(item, where="Fn::Join") for item in items))


def _select(scope: TemplateScope, argument: Any) -> Any:
    index, items = int(_resolve(scope, argument[0])), _resolve(scope, argument[1])
    if items == KNOWN_AFTER_APPLY:
        return KNOWN_AFTER_APPLY
    if isinstance(items, str):
        items = items.split(",")
    if not 0 <= index < len(items):
        raise TemplateError(f"Template error: Fn::Select cannot select nonexistent value at index {index}")
    return items[index]


def _split(scope: TemplateScope, argument: Any) -> Any:
    text = _resolve(scope, argument[1])
    return text if text == KNOWN_AFTER_APPLY else str(text).split(argument[0])


def _find_in_map(scope: TemplateScope, argument: Any) -> Any:
    name, top, second = (_resolve(scope, part) for part in argument[:3])
    try:
        return _resolve(scope, scope.mappings[name][str(top)][str(second)])
    except KeyError:
        if len(argument) > 3 and "DefaultValue" in argument[3]:
            return _resolve(scope, argument[3]["DefaultValue"])
        raise TemplateError(f"Template error: Unable to get mapping for {name}::{top}::{second}") from None


def _if(scope: TemplateScope, argument: Any) -> Any:
    if not isinstance(argument, list) or len(argument) != 3:
        raise TemplateError("Template error: Fn::If requires a list argument with three elements")
    return _resolve(scope, argument[1] if scope.holds(argument[0]) else argument[2])


def _truth(scope: TemplateScope, expression: Any) -> bool:
    value = _resolve(scope, expression)
    if isinstance(value, bool):
        return value
    if isinstance(value, str) and value in ("true", "false"):
        return value == "true"
    raise TemplateError(f"Template error: a condition must be true or false, got {value!r}")


def _condition(scope: TemplateScope, argument: Any) -> Any:
    return scope.holds(argument) if isinstance(argument, str) else {"Condition": _resolve(scope, argument)}


def _equals(scope: TemplateScope, argument: Any) -> bool:
    left, right = (_resolve(scope, part) for part in argument)
    if isinstance(left, (dict, list)) or isinstance(right, (dict, list)):
        return bool(left == right)
    return _text(left, where="Fn::Equals") == _text(right, where="Fn::Equals")


def _cidr(scope: TemplateScope, argument: Any) -> Any:
    resolved = _resolve(scope, argument)
    if resolved[0] == KNOWN_AFTER_APPLY:
        return KNOWN_AFTER_APPLY
    block, count = ipaddress.ip_network(resolved[0]), int(resolved[1])
    bits = int(resolved[2]) if len(resolved) > 2 else (8 if block.version == 4 else 64)
    subnets = block.subnets(new_prefix=block.max_prefixlen - bits)
    found = [str(subnet) for subnet, _ in zip(subnets, range(count), strict=False)]
    if len(found) < count:
        raise TemplateError(f"Template error: Fn::Cidr cannot take {count} blocks of {bits} bits from {block}")
    return found


def _get_azs(scope: TemplateScope, argument: Any) -> list[str]:
    region = _resolve(scope, argument)
    if region not in ("", None, scope.pseudo["AWS::Region"]):
        raise TemplateError(
            f"Template error: Fn::GetAZs for region {region}; the embedded AWS has one region, "
            f"{scope.pseudo['AWS::Region']}"
        )
    return scope.zones()


def _contains(scope: TemplateScope, argument: Any) -> bool:
    items, value = (_resolve(scope, part) for part in argument)
    return _text(value, where="Fn::Contains") in [str(item) for item in items]


_FUNCTIONS: dict[str, Callable[[TemplateScope, Any], Any]] = {
    "Ref": _ref,
    "Condition": _condition,
    "Fn::And": lambda scope, items: all(_truth(scope, item) for item in items),
    "Fn::Base64": lambda scope, text: base64.b64encode(str(_resolve(scope, text)).encode()).decode(),
    "Fn::Cidr": _cidr,
    "Fn::Contains": _contains,
    "Fn::Equals": _equals,
    "Fn::FindInMap": _find_in_map,
    "Fn::GetAZs": _get_azs,
    "Fn::GetAtt": _get_att,
    "Fn::If": _if,
    "Fn::ImportValue": lambda scope, name: scope.imported(str(_resolve(scope, name))),
    "Fn::Join": _join,
    "Fn::Not": lambda scope, items: not _truth(scope, items[0]),
    "Fn::Or": lambda scope, items: any(_truth(scope, item) for item in items),
    "Fn::Select": _select,
    "Fn::Split": _split,
    "Fn::Sub": _sub,
}
