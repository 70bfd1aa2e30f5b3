"""
All templates of an app, for rules about any resource, with or without a cluster.

Rules over ``App`` skip values that are unknown before deployment, instead of reporting each of a thousand properties.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from holdfast.validation.cloudformation import Node, Order, Reference, Resource, Template, Text, Values
from holdfast.validation.model.item import Item

_NAMED = re.compile(
    r"^(?:arn:aws[a-z-]*:(?:eks|secretsmanager|sagemaker|kms):([a-z]{2}(?:-[a-z]+)+-\d):|"
    r"fs-[0-9a-f]+\.fsx\.([a-z]{2}(?:-[a-z]+)+-\d)\.amazonaws\.com)"
)
_ZONE = re.compile(r"^([a-z]{2}(?:-[a-z]+)+-\d)[a-z]$")


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class App(Item):
    values: Values
    order: Order
    memo: dict[str, Any] = field(default_factory=dict)
    """What one rule found out and another asks too."""

    def all(self) -> Iterator[Resource]:
        """Resources, in the order of templates."""
        for template in self.values.graph.templates:
            for logical_id in template.section("Resources"):
                found = self.values.graph.find(template, logical_id)
                if found is not None:
                    yield found

    def each(self, *kinds: str) -> Iterator[tuple[Resource, Node]]:
        """Resources of some types with their properties."""
        for resource in self.values.graph.of_type(*kinds):
            yield resource, self.values.properties(resource)

    def node(self, resource: Resource) -> Node:
        return self.values.properties(resource)

    def leaves(self, resource: Resource) -> list[Node]:
        """All scalar values in a resource's properties."""
        key = f"leaves {id(resource)}"  # paths of templates without one are alike
        if key not in self.memo:
            self.memo[key] = list(leaves(self.node(resource)))
        found: list[Node] = self.memo[key]
        return found

    @property
    def complete(self) -> bool:
        """True if all resources are written: no macro."""
        return self.values.graph.complete

    def region(self, template: Template) -> str | None:
        """Region of a template: the given one, or that of its zones if they agree."""
        if template.region is not None:
            return template.region
        key = f"region {template.path}"
        if key not in self.memo:
            found = {region for _, region in (*self.zones(template), *self.named_regions(template))}
            self.memo[key] = found.pop() if len(found) == 1 else None
        region: str | None = self.memo[key]
        return region

    def named_regions(self, template: Template) -> Iterator[tuple[str, str]]:
        """Regions of named resources: EKS cluster, file systems and secrets."""
        for cluster in self.values.graph.of_type("AWS::SageMaker::Cluster"):
            if cluster.template is template:
                for leaf in self.leaves(cluster):
                    text = leaf.value if isinstance(leaf.value, str) else text_of(leaf.value) or ""
                    match = _NAMED.match(text)
                    if match:
                        yield leaf.path, match[1] or match[2]

    def zones(self, template: Template) -> Iterator[tuple[str, str]]:
        for resource in self.values.graph.of_type("AWS::EC2::Subnet"):
            if resource.template is template:
                zone = self.node(resource).get("AvailabilityZone")
                match = _ZONE.fullmatch(zone.value) if isinstance(zone.value, str) else None
                if match:
                    yield zone.path, match[1]


def body_path(resource: Resource) -> str:
    """Path of a resource as a whole."""
    return resource.path.removesuffix(".Properties")


def text_of(value: object) -> str | None:
    """Value as text, with gaps for unknown parts; None if it is not text."""
    if isinstance(value, str):
        return value
    if isinstance(value, Text):
        return value.with_gaps()
    return None


def leaves(node: Node) -> Iterator[Node]:
    value = node.value
    if isinstance(value, Mapping):
        for key in value:
            yield from leaves(node.get(str(key)))
    elif isinstance(value, list):
        for entry in node.items() or ():
            yield from leaves(entry)
    else:
        yield node


def references_in(value: object) -> Iterator[Reference]:
    if isinstance(value, Reference):
        yield value
    elif isinstance(value, Text):
        for part in value.parts:
            yield from references_in(part)
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from references_in(item)
    elif isinstance(value, list):
        for item in value:
            yield from references_in(item)
