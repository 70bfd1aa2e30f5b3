"""
Intrinsic functions, evaluated to plain values, references, or UNRESOLVED.

Never guesses: a parameter is UNRESOLVED unless its template has a value (``Template.values``).
"""

import functools
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from holdfast.validation.cloudformation.functions import cidr, json_text, length
from holdfast.validation.cloudformation.graph import Graph, Reference, Resource, Template, Text
from holdfast.validation.cloudformation.pseudo import EXAMPLE_REGION, pseudo_parameters
from holdfast.validation.cloudformation.unresolved import UNRESOLVED


class _Absent: ...


ABSENT: Final = _Absent()
_DEPTH = 60
"""References through exports and nested stacks end long before; only a circle gets here."""
_SUBSTITUTION = re.compile(r"\$\{([^!{}][^{}]*)\}")
NAMES = {
    "AWS::S3::Bucket": "BucketName",
    "AWS::IAM::Role": "RoleName",
    "AWS::EKS::Cluster": "Name",
    "AWS::Logs::LogGroup": "LogGroupName",
    "AWS::CloudWatch::Alarm": "AlarmName",
    "AWS::SageMaker::Cluster": "ClusterName",
}
"""The property that Ref gives back, where it is the name and the template chooses it."""
_OUTPUTS = {
    "AWS::CloudFormation::Stack",
    "AWS::CloudFormation::WaitCondition",
    "AWS::Serverless::Application",
    "AWS::ServiceCatalog::CloudFormationProvisionedProduct",
}
"""Their attributes hold what others put there; Ref is their own id."""
_STACKS = ("AWS::CloudFormation::Stack", "AWS::Serverless::Application")
_AS_EKS = "Custom::AWSCDK-EKS-Cluster"
"""The CDK's own provider: it gives what ``AWS::EKS::Cluster`` gives, the name by Ref and no other attribute."""


class Intrinsics:
    """
    Evaluation of functions.

    Args:
        example: Account and partition where those of the deployment are open. Default: they stay open.
        region: Likewise.
    """

    def __init__(
        self, graph: Graph, *, example: tuple[str | None, str | None] = (None, None), region: str | None = None
    ) -> None:
        self.graph = graph
        self._example = example
        self._region = region
        self._known: dict[tuple[int, int], tuple[Template, object, object]] = {}
        """By identity, which keeping both keeps: a template, what is written in it, and what that comes to."""

    @functools.cached_property
    def in_example(self) -> "Intrinsics":
        """The same in an example region, where that of the deployment is open."""
        return Intrinsics(self.graph, example=self._example, region=EXAMPLE_REGION)

    def value(self, template: Template, written: Any) -> object:
        """Cached result of ``resolve``; do not modify it."""
        if not isinstance(written, dict | list):
            return self.resolve(template, written)
        place = (id(template), id(written))
        if place not in self._known:
            self._known[place] = (template, written, self.resolve(template, written))
        return self._known[place][2]

    def resolve(self, template: Template, value: Any, depth: int = 0) -> object:
        """Plain values, Reference, Text, ABSENT or UNRESOLVED; also inside mappings and lists."""
        if depth > _DEPTH:
            return UNRESOLVED
        if isinstance(value, str):
            return UNRESOLVED if "{{resolve:" in value else value
        if isinstance(value, list):
            items = [self.resolve(template, item, depth + 1) for item in value]
            return [item for item in items if item is not ABSENT]
        if isinstance(value, Mapping):
            if is_function(value):
                function, argument = next(iter(value.items()))
                return self._call(template, str(function), argument, depth + 1) if len(value) == 1 else UNRESOLVED
            pairs = ((key, self.resolve(template, item, depth + 1)) for key, item in value.items())
            return {key: item for key, item in pairs if item is not ABSENT}
        return value

    def name(self, reference: Reference) -> object:
        """Name of a reference, if the template chooses it: a string or Text."""
        kind = reference.resource.type
        if reference.attribute == "Ref" and kind in NAMES:
            properties = reference.resource.body.get("Properties")
            chosen = properties.get(NAMES[kind]) if isinstance(properties, Mapping) else None
            return UNRESOLVED if chosen is None else self.resolve(reference.resource.template, chosen)
        return UNRESOLVED

    def _call(self, template: Template, function: str, argument: Any, depth: int) -> object:
        match function:
            case "Ref":
                return self._ref(template, argument, depth)
            case "Fn::GetAtt":
                return self._get_att(template, argument, depth)
            case "Fn::Join":
                return self._join(template, argument, depth)
            case "Fn::Sub":
                return self._sub(template, argument, depth)
            case "Fn::Select":
                return self._select(template, argument, depth)
            case "Fn::Split":
                return self._split(template, argument, depth)
            case "Fn::ImportValue":
                return self._import(template, argument, depth)
            case "Fn::FindInMap":
                return self._find_in_map(template, argument, depth)
            case "Fn::Cidr":
                return cidr(self.resolve(template, argument, depth))
            case "Fn::Length":
                return length(self.resolve(template, argument, depth))
            case "Fn::ToJsonString":
                return json_text(self.resolve(template, argument, depth))
            case _:
                return UNRESOLVED

    def _ref(self, template: Template, name: Any, depth: int) -> object:
        if not isinstance(name, str):
            return UNRESOLVED
        if name.startswith("AWS::"):
            return ABSENT if name == "AWS::NoValue" else self._pseudo(template).get(name, UNRESOLVED)
        resource = self.graph.find(template, name)
        if resource is not None:
            return UNRESOLVED if _provided(resource) else Reference(resource, "Ref")
        parent = self.graph.parent(template)
        properties = parent.body.get("Properties") if parent else None
        given = properties.get("Parameters") if isinstance(properties, Mapping) else None
        if parent is not None and isinstance(given, Mapping) and name in given:
            return self.resolve(parent.template, given[name], depth)
        return template.values.get(name, UNRESOLVED)

    def _pseudo(self, template: Template) -> dict[str, object]:
        account, partition = self._example
        return pseudo_parameters(
            account=template.account or account, region=template.region or self._region, partition=partition
        )

    def _get_att(self, template: Template, argument: Any, depth: int) -> object:
        parts = argument.split(".", 1) if isinstance(argument, str) else argument
        if not (isinstance(parts, list) and len(parts) == 2 and all(isinstance(part, str) for part in parts)):
            return UNRESOLVED
        resource = self.graph.find(template, parts[0])
        if resource is None:
            return UNRESOLVED
        if resource.type in _STACKS and parts[1].startswith("Outputs."):
            nested = self.graph.nested(resource)
            output = nested.section("Outputs").get(parts[1].removeprefix("Outputs.")) if nested else None
            if nested is None or not isinstance(output, Mapping):
                return UNRESOLVED
            return self.resolve(nested, output.get("Value"), depth)
        return UNRESOLVED if _provided(resource) or resource.type in _OUTPUTS else Reference(resource, parts[1])

    def _join(self, template: Template, argument: Any, depth: int) -> object:
        if not (isinstance(argument, list) and len(argument) == 2 and isinstance(argument[0], str)):
            return UNRESOLVED
        items = self.resolve(template, argument[1], depth)
        if not isinstance(items, list):
            return UNRESOLVED
        parts: list[object] = []
        for index, item in enumerate(items):
            if index and argument[0]:
                parts.append(argument[0])
            parts.append(item)
        return self._text(parts)

    def _sub(self, template: Template, argument: Any, depth: int) -> object:
        text, own = argument if isinstance(argument, list) and len(argument) == 2 else (argument, {})
        if not isinstance(text, str) or not isinstance(own, Mapping):
            return UNRESOLVED
        parts: list[object] = []
        position = 0
        for match in _SUBSTITUTION.finditer(text):
            parts.append(text[position : match.start()].replace("${!", "${"))
            position, name = match.end(), match[1].strip()
            if name in own:
                parts.append(self.resolve(template, own[name], depth))
            elif "." in name:
                parts.append(self._get_att(template, name, depth))
            else:
                parts.append(self._ref(template, name, depth))
        return self._text([*parts, text[position:].replace("${!", "${")])

    def _select(self, template: Template, argument: Any, depth: int) -> object:
        if not (isinstance(argument, list) and len(argument) == 2):
            return UNRESOLVED
        index, items = (self.resolve(template, item, depth) for item in argument)
        if not (isinstance(items, list) and isinstance(index, int | str) and str(index).isdigit()):
            return UNRESOLVED
        return items[int(index)] if int(index) < len(items) else UNRESOLVED

    def _split(self, template: Template, argument: Any, depth: int) -> object:
        if not (isinstance(argument, list) and len(argument) == 2 and isinstance(argument[0], str) and argument[0]):
            return UNRESOLVED
        text = self.resolve(template, argument[1], depth)
        return text.split(argument[0]) if isinstance(text, str) else UNRESOLVED

    def _import(self, template: Template, argument: Any, depth: int) -> object:
        name = self.resolve(template, argument, depth)
        found = self.graph.exported(template, name) if isinstance(name, str) else None
        return self.resolve(*found, depth) if found else UNRESOLVED

    def _find_in_map(self, template: Template, argument: Any, depth: int) -> object:
        keys = self.resolve(template, argument, depth)
        if not (isinstance(keys, list) and len(keys) in (3, 4)):
            return UNRESOLVED
        # The transform AWS::LanguageExtensions takes a default as a fourth.
        default = (
            keys[3].get("DefaultValue", UNRESOLVED) if len(keys) == 4 and isinstance(keys[3], dict) else UNRESOLVED
        )
        if any(not isinstance(key, str | int) for key in keys[:3]):
            return UNRESOLVED
        found: Any = template.section("Mappings")
        for key in map(str, keys[:3]):
            if not isinstance(found, Mapping) or key not in found:
                return default
            found = found[key]
        return found

    def _text(self, parts: Sequence[object]) -> object:
        flat: list[object] = []
        for part in parts:
            inner = part.parts if isinstance(part, Text) else (part,)
            for item in inner:
                known = self.name(item) if isinstance(item, Reference) else item
                for each in known.parts if isinstance(known, Text) else (known,):
                    each = str(each) if isinstance(each, int | float) and not isinstance(each, bool) else each
                    unknown = item if isinstance(item, Reference) and not isinstance(known, Text) else UNRESOLVED
                    kept = each if isinstance(each, str | Reference) else unknown
                    if isinstance(kept, str) and flat and isinstance(flat[-1], str):
                        flat[-1] += kept
                    elif kept != "":
                        flat.append(kept)
        if not flat:
            return ""
        return flat[0] if len(flat) == 1 and isinstance(flat[0], str) else Text(tuple(flat))


def _provided(resource: Resource) -> bool:
    """True if a foreign provider decides Ref and attributes: it may be any resource's id."""
    if resource.type in ("AWS::CloudFormation::CustomResource", _AS_EKS):
        return resource.type != _AS_EKS
    return not resource.type.startswith(("AWS::", "Alexa::"))


def is_function(value: Mapping[Any, Any]) -> bool:
    return any(str(key).startswith("Fn::") for key in value) or (len(value) == 1 and "Ref" in value)
