"""0xx: templates as such: parameters, mappings, and what nested stacks take and give."""

from collections.abc import Iterator, Mapping
from typing import Any

from holdfast.validation.cloudformation import Template, named
from holdfast.validation.engine import Broken, refused, rule, show
from holdfast.validation.model import App, Deployment
from holdfast.validation.rules.templates.references import functions_in, functions_of
from holdfast_common import closest_word

PARAMETERS = "CloudFormation user guide, 'CloudFormation template Parameters syntax'"
STACK = "AWS::CloudFormation::Stack"
_IDS = {
    "AWS::EC2::Subnet::Id": ("subnet", "SubnetIds Subnets SubnetId"),
    "List<AWS::EC2::Subnet::Id>": ("subnet", "SubnetIds Subnets SubnetId"),
    "AWS::EC2::SecurityGroup::Id": ("security group", "SecurityGroupIds VPCSecurityGroups GroupId SecurityGroups"),
    "List<AWS::EC2::SecurityGroup::Id>": (
        "security group",
        "SecurityGroupIds VPCSecurityGroups GroupId SecurityGroups",
    ),
    "AWS::EC2::VPC::Id": ("VPC", "VpcId"),
}
"""Meaning of a parameter's type, and the properties that accept it."""


@rule(
    "HF068",
    title="Mappings have the keys that Fn::FindInMap looks up",
    each=App,
    source="CloudFormation reference, 'Fn::FindInMap'",
)
def mappings(app: App, _: Deployment) -> Iterator[Broken]:
    """
    A mapping or key that is not there fails the deployment: "Template error: Unable to get mapping". Every value that a
    parameter allows needs its row.
    """
    for template in app.values.graph.templates:
        known = template.section("Mappings")
        for resource in app.all():
            for path, function, argument in functions_of(app, resource) if resource.template is template else ():
                if function == "Fn::FindInMap" and isinstance(argument, list) and len(argument) == 3:
                    yield from _lookup(template, known, argument, path)


@rule(
    "HF059",
    title="Fn::Select takes an entry that the list has",
    each=App,
    source="CloudFormation reference, 'Fn::Select'",
)
def selections(app: App, _: Deployment) -> Iterator[Broken]:
    """
    "Fn::Select doesn't check for null values or if the index is out of bounds": the stack fails. A list parameter is
    read with its default, unless conditions ask for it: they may leave out what its other lengths are for.
    """
    for resource in app.all():
        asked = set(named(resource.template.section("Conditions")))
        for path, function, argument in functions_of(app, resource):
            if function == "Fn::Select" and isinstance(argument, list) and len(argument) == 2:
                if asked & set(named(argument)):
                    continue
                index, entries = (app.values.node(resource.template, each, path) for each in argument)
                number, held = index.integer(), entries.items()
                if isinstance(number, int) and held is not None and entries.known and number >= len(held):
                    yield refused(
                        path,
                        f"Fn::Select of entry {number}, the first being 0",
                        allowed=f"entries of a list of {len(held)}",
                        fix="correct the index, or extend the list",
                    )


@rule(
    "HF070",
    title="Nested stacks exist, with the parameters and outputs that are used",
    each=App,
    source="CloudFormation reference, AWS::CloudFormation::Stack: Parameters, Outputs.NAME",
)
def nested_stacks(app: App, _: Deployment) -> Iterator[Broken]:
    """
    A parameter that the nested template does not have, one without a default that is not given, or an output that it
    does not give fails the deployment. So does a template that is not where TemplateURL says.
    """
    for stack, node in app.each(STACK):
        template = app.values.graph.nested(stack)
        url = node.get("TemplateURL").value
        if template is None:
            local = isinstance(url, str) and "://" not in url and not url.startswith("s3:")
            beside = stack.template.beside
            if local and beside is not None and not beside(str(url)):
                yield refused(
                    f"{stack.path}.TemplateURL",
                    show(url),
                    allowed="a file beside this template",
                    fix="correct the path",
                )
            continue
        takes, given = template.section("Parameters"), node.get("Parameters").keys()
        for name in given or ():
            if name not in takes:
                meant = closest_word(name, takes)
                yield refused(
                    f"{stack.path}.Parameters.{name}",
                    f"{name}, which {url} does not take",
                    allowed=f"its parameters {', '.join(takes)}",
                    fix=f"did you mean {meant}?" if meant else f"remove {name}",
                )
        for name, definition in takes.items():
            if (
                isinstance(definition, Mapping)
                and "Default" not in definition
                and given is not None
                and name not in given
            ):
                yield refused(
                    f"{stack.path}.Parameters",
                    f"no {name}",
                    allowed=f"{url} with {name}, which has no default",
                    fix=f"give {name}",
                )
    for resource in app.all():
        for path, function, argument in functions_of(app, resource):
            yield from _outputs(app, resource.template, path, function, argument)
    for template in app.values.graph.templates:
        prefix = f"{template.path}#" if template.path else ""
        for path, function, argument in functions_in(template.section("Outputs"), f"{prefix}Outputs"):
            yield from _outputs(app, template, path, function, argument)


@rule(
    "HF071",
    title="Parameters are used according to their type",
    each=App,
    source=f"{PARAMETERS}: AWS-specific parameter types",
)
def typed_parameters(app: App, _: Deployment) -> Iterator[Broken]:
    """
    A parameter of a subnet's type holds a subnet, and a property that takes security groups cannot use it.
    """
    for template in app.values.graph.templates:
        parameters = template.section("Parameters")
        for resource in app.all():
            if resource.template is not template or resource.type == STACK:
                continue
            for path, function, argument in functions_of(app, resource):
                definition = parameters.get(argument) if function == "Ref" and isinstance(argument, str) else None
                kind = definition.get("Type") if isinstance(definition, Mapping) else None
                held = _IDS.get(str(kind))
                name = next((part for part in reversed(path.split(".")) if not part.isdigit()), "")
                others = {each for what, names in _IDS.values() if held and what != held[0] for each in names.split()}
                if held is not None and name in others:
                    yield refused(
                        path,
                        f"{argument}, a {held[0]} ({kind})",
                        allowed=f"what {name} takes",
                        fix=f"name another parameter in {name}; {argument} belongs into {held[1].split()[0]}",
                    )


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _lookup(template: Template, known: Mapping[str, Any], argument: list[Any], path: str) -> Iterator[Broken]:
    name, first, second = argument
    if not isinstance(name, str):
        return
    if name not in known:
        meant = closest_word(name, known)
        yield refused(
            path,
            f"the mapping {name}, which is not there",
            allowed=f"mappings {', '.join(known)}",
            fix=f"did you mean {meant}?" if meant else f"add the mapping {name}",
        )
        return
    rows = known[name] if isinstance(known[name], Mapping) else {}
    for value, what in _values(template, first):
        if value not in rows:
            meant = closest_word(value, map(str, rows))
            yield refused(
                path,
                f"{name} without the key {value}{what}",
                allowed=f"its keys {', '.join(map(str, rows))}",
                fix=f"did you mean {meant}?" if meant else f"add {value} to the mapping {name}",
            )
    columns = [
        row for key, row in rows.items() if isinstance(row, Mapping) and (not isinstance(first, str) or key == first)
    ]
    for value, what in _values(template, second):
        if columns and not all(value in row for row in columns):
            names = dict.fromkeys(str(each) for row in columns for each in row)
            meant = closest_word(value, names)
            yield refused(
                path,
                f"{name} without {value}{what}",
                allowed=f"{', '.join(names)}",
                fix=f"did you mean {meant}?" if meant else f"add {value} to each row of {name}",
            )


def _values(template: Template, key: Any) -> Iterator[tuple[str, str]]:
    if isinstance(key, str):
        yield key, ""
    elif isinstance(key, Mapping) and set(key) == {"Ref"}:
        definition = template.section("Parameters").get(str(key["Ref"]))
        if isinstance(definition, Mapping):
            allowed = definition.get("AllowedValues")
            values = (
                allowed if isinstance(allowed, list) else [definition["Default"]] if "Default" in definition else []
            )
            for value in values:
                yield _text(value), f", which {key['Ref']} allows"


def _outputs(app: App, template: Template, path: str, function: str, argument: Any) -> Iterator[Broken]:
    parts = argument.split(".", 1) if isinstance(argument, str) else argument
    if function != "Fn::GetAtt" or not isinstance(parts, list) or len(parts) != 2 or not isinstance(parts[1], str):
        return
    resource = app.values.graph.find(template, str(parts[0]))
    if resource is None or resource.type != STACK:
        return
    nested = app.values.graph.nested(resource)
    gives = nested.section("Outputs") if nested is not None else None
    name = parts[1].removeprefix("Outputs.")
    if not parts[1].startswith("Outputs."):
        yield refused(
            path,
            f"{parts[0]}.{parts[1]}",
            allowed="Outputs.NAME of a nested stack",
            fix=f"write {parts[0]}.Outputs.{parts[1]}",
        )
    elif gives is not None and name not in gives:
        meant = closest_word(name, gives)
        yield refused(
            path,
            f"the output {name}, which {parts[0]} does not give",
            allowed=f"its outputs {', '.join(gives)}",
            fix=f"did you mean {meant}?" if meant else f"add {name} to its outputs",
        )
