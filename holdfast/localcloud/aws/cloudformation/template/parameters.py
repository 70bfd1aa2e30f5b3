"""Template parameters: values, constraints, types. Pure, except for the SSM lookup passed in."""

import re
from collections.abc import Callable, Mapping
from typing import Any

from holdfast.localcloud.aws.cloudformation.template.parsing import TemplateError

SSM_VALUE = "AWS::SSM::Parameter::Value<"


def chosen(
    document: Mapping[str, Any], given: list[dict[str, Any]], previous: Mapping[str, str] | None
) -> dict[str, str]:
    """Return the raw value of every parameter: given, previous, or default. Reject what the template forbids."""
    declared = document.get("Parameters", {})
    unknown = sorted(entry["ParameterKey"] for entry in given if entry["ParameterKey"] not in declared)
    if unknown:
        raise TemplateError(f"Parameters: [{', '.join(unknown)}] do not exist in the template")
    values: dict[str, str] = {}
    for entry in given:
        name = entry["ParameterKey"]
        if entry.get("UsePreviousValue"):
            if previous is None or name not in previous:
                raise TemplateError(
                    f"Invalid input for parameter key {name}. Cannot specify usePreviousValue as true "
                    "for a parameter key not in the previous template"
                )
            values[name] = previous[name]
        elif "ParameterValue" in entry:
            values[name] = entry["ParameterValue"]
    missing = []
    for name, rule in declared.items():
        if name not in values and "Default" in rule:
            default = rule["Default"]
            values[name] = str(default).lower() if isinstance(default, bool) else str(default)
        if name not in values:
            missing.append(name)
    if missing:
        raise TemplateError(f"Parameters: [{', '.join(missing)}] must have values")
    for name, value in values.items():
        _judge(name, declared[name], value)
    return values


def _judge(name: str, rule: Mapping[str, Any], value: str) -> None:
    kind = rule.get("Type", "String")
    why = rule.get("ConstraintDescription")
    if kind == "Number" and not re.fullmatch(r"-?\d+(\.\d+)?", value):
        raise TemplateError(f"Parameter '{name}' must be a number.")
    items = value.split(",") if kind == "CommaDelimitedList" or kind.startswith("List<") else [value]
    for item in items:
        if "AllowedValues" in rule and item not in [str(allowed) for allowed in rule["AllowedValues"]]:
            allowed = ", ".join(str(allowed) for allowed in rule["AllowedValues"])
            raise TemplateError(why or f"Parameter '{name}' must be one of AllowedValues: [{allowed}], got '{item}'")
        if "AllowedPattern" in rule and not re.fullmatch(rule["AllowedPattern"], item):
            raise TemplateError(
                f"Parameter {name} failed to satisfy constraint: "
                f"{why or 'must match pattern ' + rule['AllowedPattern']}"
            )
    if kind == "Number":
        too_small = "MinValue" in rule and float(value) < float(rule["MinValue"])
        if too_small or ("MaxValue" in rule and float(value) > float(rule["MaxValue"])):
            raise TemplateError(
                f"Parameter '{name}' must be a number between {rule.get('MinValue', 'any')} and "
                f"{rule.get('MaxValue', 'any')}, got {value}"
            )
    if "MinLength" in rule and len(value) < int(rule["MinLength"]):
        raise TemplateError(f"Parameter '{name}' must contain at least {rule['MinLength']} characters.")
    if "MaxLength" in rule and len(value) > int(rule["MaxLength"]):
        raise TemplateError(f"Parameter '{name}' must contain at most {rule['MaxLength']} characters.")


def resolved(document: Mapping[str, Any], values: Mapping[str, str], lookup: Callable[[str], str]) -> dict[str, str]:
    return {
        name: lookup(value)
        for name, value in values.items()
        if document["Parameters"][name].get("Type", "String").startswith(SSM_VALUE)
    }


def typed(document: Mapping[str, Any], values: Mapping[str, str], looked_up: Mapping[str, str]) -> dict[str, Any]:
    """Return the value of Ref for each parameter: text, or a list."""
    result: dict[str, Any] = {}
    for name, value in values.items():
        kind = document["Parameters"][name].get("Type", "String")
        text = looked_up.get(name, value)
        listed = kind == "CommaDelimitedList" or "List<" in kind
        result[name] = [item.strip() for item in text.split(",")] if listed else text
    return result


def described(
    document: Mapping[str, Any], values: Mapping[str, str], looked_up: Mapping[str, str]
) -> list[dict[str, str]]:
    """Return parameters as the API shows them, NoEcho ones masked."""
    result = []
    for name, value in values.items():
        hidden = str(document["Parameters"][name].get("NoEcho", "")).lower() == "true"
        entry = {"ParameterKey": name, "ParameterValue": "****" if hidden else value}
        result.append(entry | ({"ResolvedValue": looked_up[name]} if name in looked_up else {}))
    return result
