"""Typed access to values of templates, and relations of resources."""

import functools
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from holdfast.validation.cloudformation.graph import Graph, Reference, Resource, Template, Text
from holdfast.validation.cloudformation.intrinsics import ABSENT, NAMES, Intrinsics, is_function
from holdfast.validation.cloudformation.properties import Properties
from holdfast.validation.cloudformation.pseudo import example_of
from holdfast.validation.cloudformation.unresolved import UNRESOLVED

_ROLE = "AWS::IAM::Role"
_IDENTITY = {
    "AWS::EC2::RouteTable": {"RouteTableId"},
    "AWS::EC2::SecurityGroup": {"GroupId", "Id"},
    "AWS::EC2::Subnet": {"SubnetId"},
    "AWS::EC2::VPC": {"VpcId"},
    "AWS::EC2::NatGateway": {"NatGatewayId"},
    "AWS::EC2::InternetGateway": {"InternetGatewayId"},
    "AWS::EKS::Cluster": {"Arn"},
    "AWS::FSx::FileSystem": {"DNSName", "LustreMountName", "ResourceARN"},
    "AWS::IAM::Role": {"Arn"},
    "AWS::IAM::ManagedPolicy": {"PolicyArn"},
    "AWS::S3::Bucket": {"Arn"},
    "AWS::SageMaker::Cluster": {"ClusterArn"},
    "AWS::Logs::LogGroup": {"Arn"},
    "AWS::CloudWatch::Alarm": {"Arn"},
    "Custom::AWSCDK-EKS-Cluster": {"Arn"},
}
"""Attributes that stand for the resource itself, beside Ref."""


@dataclass(frozen=True)
class Linked:
    found: tuple[Resource, ...]
    doubtful: tuple[Resource, ...]
    """May belong to it; only the deployment can tell."""

    @property
    def complete(self) -> bool:
        return not self.doubtful


class Values:
    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self._intrinsics = Intrinsics(graph, example=example_of(graph.templates))

    def name(self, reference: Reference) -> object:
        """Name of a reference, if the template chooses it: a string or Text."""
        return self._intrinsics.name(reference)

    def properties(self, resource: Resource) -> "Node":
        return Node(self._intrinsics, resource.template, resource.body.get("Properties", {}), resource.path)

    def itself(self, resource: Resource) -> "Node":
        """Reference to a resource, as others would write it."""
        return self.node(resource.template, {"Ref": resource.logical_id}, resource.path)

    def node(self, template: Template, written: object, path: str) -> "Node":
        return Node(self._intrinsics, template, written, path)

    def existing_subnet(self, subnet_id: object) -> Mapping[str, str]:
        found = (each.subnets.get(subnet_id) for each in self.graph.templates if isinstance(subnet_id, str))
        return next((each for each in found if each is not None), {})

    def linked(self, kinds: Sequence[str], property_path: Sequence[str], target: Resource) -> "Linked":
        """Resources that refer to another in a property, or in an entry of that list."""
        found, doubtful = [], []
        for resource in self.graph.of_type(*kinds):
            node = self.properties(resource).get(*property_path)
            entries = node.items() if isinstance(node.value, list) else [node]
            answers = [entry.is_resource(target) for entry in entries or ()]
            if True in answers and not resource.conditional:
                found.append(resource)
            elif True in answers or None in answers:
                doubtful.append(resource)
        return Linked(tuple(found), tuple(doubtful))


class Node:
    def __init__(self, intrinsics: Intrinsics, template: Template, raw: object, path: str) -> None:
        self._intrinsics = intrinsics
        self._template = template
        self._raw = raw
        self.path = raw.path if isinstance(raw, Properties) else path

    @functools.cached_property
    def value(self) -> object:
        """Plain values, Reference, Text, ABSENT or UNRESOLVED."""
        return self._intrinsics.value(self._template, self._raw)

    @property
    def example(self) -> object:
        """Value in an example region, if that of the deployment is open: for the form of names and ARNs."""
        return self._intrinsics.in_example.value(self._template, self._raw)

    @property
    def written(self) -> object:
        return self._raw

    @property
    def token(self) -> str:
        """As written, on one line: equal for equal tokens."""
        return json.dumps(self._raw, default=repr, sort_keys=True)

    @property
    def present(self) -> bool:
        """True if it exists, known or not."""
        return self.value is not ABSENT and self.value is not None

    @property
    def known(self) -> bool:
        """True if it exists and is at least partly known."""
        return self.present and self.value is not UNRESOLVED

    @property
    def is_attribute(self) -> bool:
        """True for an attribute of a resource of the app, which only the deployment knows."""
        return isinstance(self.value, Reference)

    def get(self, *keys: str) -> "Node":
        """Property below; UNRESOLVED if its parent is."""
        return self._below(keys)[0]

    def place(self, *keys: str) -> str:
        """Place in the source of a property below, of an absent one too."""
        return self._below(keys)[1]

    def _below(self, keys: Sequence[str]) -> "tuple[Node, str]":
        node = origin = self
        place, start = self.path, 0
        for depth, key in enumerate(keys):
            if isinstance(node._raw, Properties):
                origin, start = node, depth
            held = node._held()
            if isinstance(held, Mapping):
                below: object = held.get(key, ABSENT)
            else:
                below = UNRESOLVED if node.present else ABSENT
            place = origin._place(*keys[start : depth + 1])
            node = Node(self._intrinsics, self._template, below, place)
        return node, place

    def items(self) -> "list[Node] | None":
        """Entries of a list; empty if absent, None if their number is unknown."""
        if not self.present:
            return []
        held = self._held()
        if not isinstance(held, list):
            return None
        entries = [
            Node(self._intrinsics, self._template, item, f"{self.path}.{index}") for index, item in enumerate(held)
        ]
        return [entry for entry in entries if entry.value is not ABSENT]

    def keys(self) -> list[str] | None:
        """Keys of a mapping; empty if absent, None if unknown."""
        if not self.present:
            return []
        return list(self.value) if isinstance(self.value, Mapping) else None

    def text(self) -> Any:
        """String; None if absent; UNRESOLVED if unknown."""
        if not self.present:
            return None
        value = self.name()
        if isinstance(value, bool):
            return "true" if value else "false"  # as CloudFormation writes it where a text is wanted
        if isinstance(value, int | float):
            return str(value)
        return value if isinstance(value, str) else UNRESOLVED

    def name(self) -> object:
        """Value, with a resource's own name in place of a reference to it."""
        return self._intrinsics.name(self.value) if isinstance(self.value, Reference) else self.value

    def integer(self) -> Any:
        """Integer; None if absent; UNRESOLVED if unknown or not a number."""
        if not self.present:
            return None
        if isinstance(self.value, int) and not isinstance(self.value, bool):
            return self.value
        if isinstance(self.value, str) and re.fullmatch(r"-?\d+", self.value):
            return int(self.value)
        return UNRESOLVED

    def boolean(self, *, default: bool) -> Any:
        """True or False; UNRESOLVED if unknown."""
        if not self.present:
            return default
        if isinstance(self.value, bool):
            return self.value
        if isinstance(self.value, str) and self.value.lower() in ("true", "false"):
            return self.value.lower() == "true"
        return UNRESOLVED

    def strings(self) -> Any:
        """Tuple of strings, empty if absent; UNRESOLVED if any is unknown."""
        if isinstance(self.value, str):
            return (self.value,)
        entries = self.items()
        if entries is None:
            return UNRESOLVED
        texts = tuple(entry.text() for entry in entries)
        return texts if all(isinstance(text, str) for text in texts) else UNRESOLVED

    def mapping(self, key: str | None = None, value: str | None = None) -> Any:
        """Strings by string; also from a list of mappings with these two keys, such as tags."""
        if key is None or value is None:
            names = self.keys()
            pairs = None if names is None else [(name, self.get(name).text()) for name in names]
        else:
            entries = self.items()
            pairs = None if entries is None else [(each.get(key).text(), each.get(value).text()) for each in entries]
        if pairs is None or not all(isinstance(text, str) for pair in pairs for text in pair):
            return UNRESOLVED
        return dict(pairs)

    def resource(self, *kinds: str) -> Resource | None:
        """Resource of the app and of these types that this refers to, a role also by an ARN made of its name."""
        if not isinstance(self.value, Reference):
            return self._role() if _ROLE in kinds else None
        resource = self.value.resource
        itself = self.value.attribute == "Ref" or self.value.attribute in _IDENTITY.get(resource.type, ())
        return resource if itself and resource.type in kinds else None

    def _role(self) -> Resource | None:
        start = self.value.start if isinstance(self.value, Text) else self.value
        if not (isinstance(start, str) and ":role/" in start):
            return None
        last = self.value.parts[-1] if isinstance(self.value, Text) else start.rpartition("/")[2]
        if isinstance(last, Reference):
            return last.resource if last.resource.type == _ROLE and last.attribute == "Ref" else None
        roles = self._intrinsics.graph.of_type(_ROLE)
        return next((each for each in roles if self._intrinsics.name(Reference(each, "Ref")) == last), None)

    def is_resource(self, resource: Resource) -> bool | None:
        """True for a reference to a resource; None if unknown."""
        if isinstance(self.value, Reference):
            return self.resource(resource.type) is resource
        if isinstance(self.value, str) and resource.type in NAMES:
            properties = resource.body.get("Properties")
            if not isinstance(properties, Mapping) or NAMES[resource.type] not in properties:
                return False  # a name that AWS makes up cannot be written down
            chosen = self._intrinsics.name(Reference(resource, "Ref"))
            return self.value == chosen if isinstance(chosen, str) else None
        return None if self.value is UNRESOLVED or isinstance(self.value, Text) else False

    def _held(self) -> object:
        plain = isinstance(self._raw, list) or (isinstance(self._raw, Mapping) and not is_function(self._raw))
        return self._raw if plain else self.value

    def _place(self, *keys: str) -> str:
        return self._raw.place(*keys) if isinstance(self._raw, Properties) else ".".join((self.path, *keys))


def optional(node: Node, read: Callable[[Node], Any]) -> Any:
    """None if absent, UNRESOLVED for a function, which may return nothing."""
    if not node.present:
        return None
    return read(node) if isinstance(node.value, Mapping) else UNRESOLVED


def required(value: Any) -> Any:
    """UNRESOLVED if absent: missing properties are reported by the schema."""
    return UNRESOLVED if value is None else value
