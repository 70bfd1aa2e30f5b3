"""Parsing of templates (JSON or YAML with short-form tags) and checks of the whole. Pure: no AWS call, no clock."""

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import yaml

SECTIONS = frozenset(
    {
        "AWSTemplateFormatVersion",
        "Conditions",
        "Description",
        "Hooks",
        "Mappings",
        "Metadata",
        "Outputs",
        "Parameters",
        "Resources",
        "Rules",
        "Transform",
    }
)
PSEUDO_PARAMETERS = frozenset(
    {
        "AWS::AccountId",
        "AWS::NoValue",
        "AWS::NotificationARNs",
        "AWS::Partition",
        "AWS::Region",
        "AWS::StackId",
        "AWS::StackName",
        "AWS::URLSuffix",
    }
)
IAM_TYPES = frozenset({"AWS::IAM::Role", "AWS::IAM::Policy", "AWS::IAM::ManagedPolicy"})


LARGEST = 1_000_000
"""Bytes of a template in S3 (CloudFormation user guide, "Understand CloudFormation quotas")."""
DEEPEST = 200
"""Assumed: CloudFormation names no bound."""


class TemplateError(ValueError):
    """The template, or a value in it, is invalid; the message is worded as AWS words it."""


class _Loader(yaml.SafeLoader):
    yaml_implicit_resolvers = {  # noqa: RUF012
        key: [(tag, regexp) for tag, regexp in resolvers if tag != "tag:yaml.org,2002:timestamp"]
        for key, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }
    depth = 0

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        """Reject aliases, as CloudFormation does, and too deep nesting."""
        if self.check_event(yaml.AliasEvent):
            raise TemplateError("Template error: YAML aliases are not allowed in CloudFormation templates")
        self.depth += 1
        if self.depth > DEEPEST:
            raise _too_deep()
        node = super().compose_node(parent, index)
        self.depth -= 1
        return node


def _short_form(loader: _Loader, suffix: str, node: yaml.Node) -> dict[str, Any]:
    if isinstance(node, yaml.ScalarNode):
        value: Any = loader.construct_scalar(node)
    elif isinstance(node, yaml.SequenceNode):
        value = loader.construct_sequence(node, deep=True)
    else:
        assert isinstance(node, yaml.MappingNode)
        value = loader.construct_mapping(node, deep=True)
    if suffix == "GetAtt" and isinstance(value, str):
        value = value.split(".", 1)
    return {suffix if suffix in ("Ref", "Condition") else f"Fn::{suffix}": value}


_Loader.add_multi_constructor("!", _short_form)


def parse(body: str) -> dict[str, Any]:
    """Return the template's document. Raise TemplateError if it is invalid."""
    if len(body) > LARGEST:
        raise TemplateError(f"Template may not exceed {LARGEST} bytes in size.")
    try:
        document = json.loads(body) if body.lstrip().startswith("{") else yaml.load(body, Loader=_Loader)  # noqa: S506
    except TemplateError:
        raise
    except (ValueError, TypeError, yaml.YAMLError) as error:
        raise TemplateError(f"Template format error: JSON or YAML not well-formed. {error}") from None
    except RecursionError:
        raise _too_deep() from None
    _bound(document)
    if not isinstance(document, dict):
        raise TemplateError("Template format error: unsupported structure.")
    unknown = sorted(str(key) for key in document if key not in SECTIONS)
    if unknown:
        raise TemplateError(f"Invalid template property or properties [{', '.join(unknown)}]")
    if document.get("Transform"):
        raise TemplateError(f"Template error: transform {document['Transform']} is not supported by the embedded AWS")
    resources = document.get("Resources")
    if not isinstance(resources, dict) or not resources:
        raise TemplateError("Template format error: At least one Resources member must be defined.")
    for name, definition in resources.items():
        if not isinstance(definition, dict) or not isinstance(definition.get("Type"), str):
            raise TemplateError(f"Template format error: [/Resources/{name}/Type] must be a string.")
    return document


def _bound(document: Any) -> None:
    level = [document]
    for _ in range(DEEPEST):
        level = [each for one in level for each in _below(one)]
        if not level:
            return
    raise _too_deep()


def _below(value: Any) -> Iterator[Any]:
    if isinstance(value, dict):
        yield from value.values()
    elif isinstance(value, list):
        yield from value


def _too_deep() -> TemplateError:
    return TemplateError(f"Template format error: values are nested more than {DEEPEST} levels deep.")


def references(value: Any) -> Iterator[tuple[str, str]]:
    """Return every (name, attribute) that a value refers to; attribute is "" for Ref."""
    if isinstance(value, list):
        for item in value:
            yield from references(item)
    elif isinstance(value, dict):
        if len(value) == 1:
            yield from _own_references(*next(iter(value.items())))
        for item in value.values():
            yield from references(item)


def _own_references(key: Any, argument: Any) -> Iterator[tuple[str, str]]:
    if key == "Ref" and isinstance(argument, str):
        yield argument, ""
    elif key == "Fn::GetAtt":
        parts = argument.split(".", 1) if isinstance(argument, str) else argument
        if isinstance(parts, list) and len(parts) == 2 and isinstance(parts[0], str):
            yield parts[0], parts[1] if isinstance(parts[1], str) else "*"
    elif key == "Fn::Sub":
        text, names = (argument, {}) if isinstance(argument, str) else (argument[0], argument[1])
        for name in sub_names(text):
            if name not in names:
                logical_id, _, attribute = name.partition(".")
                yield logical_id, attribute


def sub_names(text: str) -> list[str]:
    """Return the names in ``${...}`` of a Fn::Sub text, without the literal ``${!...}``."""
    names = []
    for part in text.split("${")[1:]:
        name, closed, _ = part.partition("}")
        if closed and not name.startswith("!"):
            names.append(name.strip())
    return names


def dependencies(document: Mapping[str, Any]) -> dict[str, set[str]]:
    resources = document["Resources"]
    needs: dict[str, set[str]] = {}
    for name, definition in resources.items():
        explicit = definition.get("DependsOn", [])
        needs[name] = {explicit} if isinstance(explicit, str) else set(explicit)
        needs[name] |= {other for other, _ in references(definition.get("Properties", {})) if other in resources}
        needs[name].discard(name)
    return needs


def check(document: Mapping[str, Any], *, supports: Callable[[str], bool]) -> None:
    """Reject unknown types, dangling references and cycles."""
    resources, parameters = document["Resources"], document.get("Parameters", {})
    unknown = sorted({entry["Type"] for entry in resources.values() if not supports(entry["Type"])})
    if unknown:
        raise TemplateError(f"Template format error: Unrecognized resource types: [{', '.join(unknown)}]")
    known = resources.keys() | parameters.keys() | PSEUDO_PARAMETERS
    missing: dict[str, None] = {}
    for name, needed in dependencies(document).items():
        missing |= dict.fromkeys(sorted(other for other in needed if other not in resources))
        missing |= dict.fromkeys(
            other for other, _ in references(resources[name].get("Properties")) if other not in known
        )
        condition = resources[name].get("Condition")
        if condition is not None and condition not in document.get("Conditions", {}):
            raise TemplateError(f"Template format error: Condition {condition} in resource {name} is not defined")
    if missing:
        raise TemplateError(
            f"Template format error: Unresolved resource dependencies [{', '.join(missing)}] "
            "in the Resources block of the template"
        )
    outputs = {other for other, _ in references(document.get("Outputs", {})) if other not in known}
    if outputs:
        raise TemplateError(
            f"Template format error: Unresolved resource dependencies [{', '.join(sorted(outputs))}] "
            "in the Outputs block of the template"
        )
    cycle = find_cycle(dependencies(document))
    if cycle:
        raise TemplateError(f"Circular dependency between resources: [{', '.join(sorted(cycle))}]")


def find_cycle(needs: Mapping[str, set[str]]) -> set[str]:
    left = {name: set(needed) for name, needed in needs.items()}
    while True:
        ready = {name for name, needed in left.items() if not needed & left.keys()}
        if not ready:
            return set(left)
        for name in ready:
            del left[name]


def capabilities(document: Mapping[str, Any]) -> list[str]:
    """Return the capabilities to acknowledge: named IAM resources require more than unnamed ones."""
    names = {
        "AWS::IAM::Role": "RoleName",
        "AWS::IAM::ManagedPolicy": "ManagedPolicyName",
    }
    found = [entry for entry in document["Resources"].values() if entry["Type"] in IAM_TYPES]
    if any(names.get(entry["Type"], "-") in entry.get("Properties", {}) for entry in found):
        return ["CAPABILITY_NAMED_IAM"]
    return ["CAPABILITY_IAM"] if found else []
