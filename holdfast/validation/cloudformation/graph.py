"""
Graph of an app's templates.

References, exports and imports, nested stacks, and joined texts; no service. Values that only a deployment knows
(parameters, conditions, attributes, macros) are UNRESOLVED. Pure.
"""

import functools
import json
import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from holdfast.validation.cloudformation.document import Fault

_TEMPLATE_URL = re.compile(r"([0-9a-f]{64})\.json")
"""What ends the URL of a nested stack's template, which the CDK names by its content."""
_HARMLESS = {"AWS::LanguageExtensions", "AWS::Serverless-2016-10-31", "AWS::SecretsManager-2020-07-23"}
"""Transforms that make no network, role policy, file system or cluster beside those that are written."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Template:
    body: Mapping[str, Any]
    """The parsed JSON."""
    path: str = ""
    """Put before the paths of findings, with ``#``. Default: findings begin with ``Resources``."""
    region: str | None = None
    """Default: decided at deployment."""
    account: str | None = None
    """Default: decided at deployment."""
    files: Callable[[str], Mapping[str, str] | None] = lambda _: None
    """The texts in an asset by name, of its content hash. Default: no asset's files are known."""
    beside: Callable[[str], bool] | None = None
    """True if a path in it is a file beside it. Default: unknown, it was not read from a disk."""
    asset: str = ""
    """Its own content hash, when it is the template of a nested stack. Default: it is a stack of its own."""
    values: Mapping[str, Any] = field(default_factory=dict)
    """Values of its parameters. Default: unknown before deployment."""
    parent: tuple[str, str] | None = None
    """Path of the parent template, and logical id of the stack there. Default: by its asset."""
    subnets: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """What else is known of existing subnets by id: ``availability_zone``, ``cidr``. Default: nothing."""
    faults: Sequence[Fault] = ()
    """What is wrong with its text."""

    def section(self, name: str) -> Mapping[str, Any]:
        found = self.body.get(name)
        return found if isinstance(found, Mapping) else {}


@dataclass(frozen=True, kw_only=True, eq=False)
class Resource:
    template: Template
    logical_id: str
    type: str
    body: Mapping[str, Any]

    @property
    def path(self) -> str:
        prefix = f"{self.template.path}#" if self.template.path else ""
        return f"{prefix}Resources.{self.logical_id}.Properties"

    @property
    def depends_on(self) -> Sequence[str]:
        named = self.body.get("DependsOn")
        names = named if isinstance(named, list) else [named]
        return [name for name in names if isinstance(name, str)]

    @property
    def conditional(self) -> bool:
        return "Condition" in self.body


@dataclass(frozen=True)
class Reference:
    resource: Resource
    attribute: str


@dataclass(frozen=True)
class Text:
    """String with parts that only the deployment knows."""

    parts: tuple[object, ...]
    """Strings, references and UNRESOLVED."""

    @property
    def end(self) -> str:
        last = self.parts[-1] if self.parts else ""
        return last if isinstance(last, str) else ""

    def named(self) -> str | None:
        """With logical ids in place of unknown parts; None when a part has none."""
        parts = [f"${{{part.resource.logical_id}}}" if isinstance(part, Reference) else part for part in self.parts]
        return "".join(map(str, parts)) if all(isinstance(part, str) for part in parts) else None

    def with_gaps(self) -> str:
        """With ``${...}`` in place of unknown parts."""
        return "".join(part if isinstance(part, str) else "${...}" for part in self.parts)

    @property
    def start(self) -> str:
        first = self.parts[0] if self.parts else ""
        return first if isinstance(first, str) else ""


class Graph:
    def __init__(self, templates: Sequence[Template]) -> None:
        self.templates = templates
        self._by_type: dict[str, list[Resource]] = defaultdict(list)
        self._by_id: dict[int, dict[str, Resource]] = {}
        self._exports: dict[tuple[str | None, str | None, str], tuple[Template, Any]] = {}
        self._parents: dict[int, Resource] = {}
        for template in templates:
            own = self._by_id[id(template)] = {}
            for logical_id, body in template.section("Resources").items():
                if not isinstance(body, Mapping):
                    continue
                kind = body.get("Type")
                resource = Resource(template=template, logical_id=logical_id, type=str(kind), body=body)
                own[logical_id] = resource
                self._by_type[resource.type].append(resource)
        self._index_exports()
        self._index_nested()

    @functools.cached_property
    def complete(self) -> bool:
        """True if all resources are written: no macro, loop or include."""
        return not any(
            _transforms(template) - _HARMLESS or any(name.startswith("Fn::") for name in template.section("Resources"))
            for template in self.templates
        )

    def of_type(self, *kinds: str) -> Iterator[Resource]:
        """Resources of some types, in the order of templates and resources."""
        for kind in kinds:
            yield from self._by_type.get(kind, ())

    def resources(self) -> Iterator[Resource]:
        for own in self._by_id.values():
            yield from own.values()

    def find(self, template: Template, logical_id: str) -> Resource | None:
        return self._by_id[id(template)].get(logical_id)

    def parent(self, template: Template) -> Resource | None:
        return self._parents.get(id(template))

    def nested(self, parent: Resource) -> Template | None:
        return next((item for item in self.templates if self._parents.get(id(item)) is parent), None)

    def exported(self, template: Template, name: str) -> tuple[Template, Any] | None:
        return self._exports.get((template.account, template.region, name))

    def _index_exports(self) -> None:
        for template in self.templates:
            for output in template.section("Outputs").values():
                export = output.get("Export") if isinstance(output, Mapping) else None
                name = export.get("Name") if isinstance(export, Mapping) else None
                if isinstance(name, str):
                    self._exports[(template.account, template.region, name)] = (template, output.get("Value"))

    def _index_nested(self) -> None:
        waiting: dict[tuple[str, str], list[Template]] = defaultdict(list)
        for template in self.templates:
            waiting[_folder(template), template.asset].append(template)
        reported = {template.parent: template for template in self.templates if template.parent is not None}
        for stack in self.of_type("AWS::CloudFormation::Stack", "AWS::Serverless::Application"):
            nested = reported.get((stack.template.path, stack.logical_id))
            if nested is not None:
                self._parents[id(nested)] = stack
                continue
            written = json.dumps(stack.body.get("Properties"), default=repr)
            for match in _TEMPLATE_URL.finditer(written):
                # Stacks with the same content share an asset, and are each read for themselves.
                if same := waiting[_folder(stack.template), match[1]]:
                    self._parents[id(same.pop(0))] = stack

    def identity(self, resource: Resource) -> str:
        """Logical id; with the template's path if it is not unique."""
        shared = sum(resource.logical_id in own for own in self._by_id.values()) > 1
        return f"{resource.template.path}#{resource.logical_id}" if shared else resource.logical_id


def _transforms(template: Template) -> set[str]:
    named = template.body.get("Transform", [])
    names = named if isinstance(named, list) else [named]
    return {str(name.get("Name") if isinstance(name, Mapping) else name) for name in names}


def _folder(template: Template) -> str:
    return template.path.rpartition("/")[0]
