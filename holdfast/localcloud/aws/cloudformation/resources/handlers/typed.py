"""Resource types from registry schema and botocore model, by naming rules; exceptions are rows in `resources.table`."""
# ruff: noqa: ARG002 - handlers share one interface; not every type needs every argument

import re
from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Any

import botocore.session
from botocore.model import ListShape, OperationModel, ServiceModel, StructureShape

from holdfast.localcloud.aws.cloudformation import registry
from holdfast.localcloud.aws.cloudformation.resources.handlers.base import (
    Made,
    Properties,
    ResourceContext,
    ResourceError,
)
from holdfast.localcloud.aws.cloudformation.resources.handlers.shapes import (
    LostProperties,
    members,
    pick,
    squeezed,
    to_shape,
    unwrapped,
)


def service_model(service: str) -> ServiceModel:
    if service not in _MODELS:
        _MODELS[service] = botocore.session.get_session().get_service_model(service)
    return _MODELS[service]


_MODELS: dict[str, ServiceModel] = {}


class TypeModel:
    type: str
    elsewhere: frozenset[str] = frozenset()
    """Properties that create and update operations need not have: further calls or other members carry them."""

    def __init__(
        self,
        resource_type: str,
        *,
        noun: str = "",
        service: str = "",
        create: str | None = "",
        read: str | None = "",
        update: str | None = "",
        delete: str | None = "",
        ref: str = "",
        name: str = "",
        aliases: tuple[str, ...] = (),
        tag_kind: str = "",
        name_length: int = 64,
        lower_name: bool = False,
        elsewhere: tuple[str, ...] = (),
    ) -> None:
        """
        Describe a type.

        Args:
            noun: Default: the type's last part; name of the resource in operations.
            service: Default: the type's middle part, lower case.
            create: Default: Create<noun>, singular or plural; likewise the other three, with their usual verbs.
                None for update: ``settle`` does everything; None for read: nothing to wait for.
            ref: Default: the primary identifier, several joined by |; the property or attribute of Ref.
            name: Default: an identifier ending in Name, or <type>Name; the property by which users name it.
            aliases: Further member names for the identifier.
            tag_kind: Default: the noun in kebab case; the ResourceType of EC2's TagSpecifications.
            name_length: Longest generated name.
            lower_name: True if generated names are lower case.
            elsewhere: Properties that operations need not have, beside those of the class.
        """
        self.type = resource_type
        _, family, last = resource_type.split("::")
        self.noun, self.service = noun or last, service or family.lower()
        self._named = {"create": create, "read": read, "update": update, "delete": delete}
        self._ref, self._name, self.aliases = ref, name, aliases
        self.tag_kind = tag_kind or re.sub(r"(?<=[a-z])(?=[A-Z])", "-", self.noun).lower()
        self.name_length, self.lower_name = name_length, lower_name
        self.elsewhere = type(self).elsewhere | set(elsewhere)

    # -- what the schema and the models say

    @cached_property
    def operations(self) -> Mapping[str, OperationModel | None]:
        model = service_model(self.service)
        known = {squeezed(name): name for name in model.operation_names}
        found: dict[str, OperationModel | None] = {}
        for verb, given in self._named.items():
            candidates = [] if given is None else [given] if given else list(self._candidates(verb))
            name = next((known[squeezed(entry)] for entry in candidates if squeezed(entry) in known), None)
            found[verb] = model.operation_model(name) if name else None
        return found

    def _candidates(self, verb: str) -> Iterator[str]:
        prefixes = {
            "create": ("Create",),
            "update": ("Update", "Modify"),
            "delete": ("Delete",),
            "read": ("Describe", "Get"),
        }
        for prefix in prefixes[verb]:
            for noun in (self.noun, f"{self.noun}s", f"{self.noun}es", f"{self.noun.removesuffix('y')}ies"):
                yield f"{prefix}{noun}"

    @cached_property
    def identifiers(self) -> list[str]:
        return registry.paths(self.type, "primaryIdentifier")

    def spellings(self, name: str) -> tuple[str, str, str]:
        """Return the member names of a property: as it is, with the noun in front, or without it."""
        return name, f"{self.noun}{name}", name.removeprefix(self.noun)

    @property
    def ref(self) -> str:
        """Return the property of Ref; "" if it is all identifiers joined."""
        return self._ref or (self.identifiers[0] if len(self.identifiers) == 1 else "")

    @property
    def custom_name(self) -> str:
        """Return the naming property, an identifier or <noun>Name, that users may set and omit; or ""."""
        if self._name or not self.ref:
            return self._name
        read_only = registry.paths(self.type, "readOnlyProperties")
        known = registry.schema(self.type).get("properties", {})
        last = self.type.rsplit("::", 1)[1]
        for name in (self._name, self.ref, *self.identifiers, f"{self.noun}Name", f"{last}Name", "Name"):
            if name.endswith("Name") and name in known and name not in read_only:
                return name
        return ""

    # -- arguments

    def named(self, context: ResourceContext, properties: Properties) -> Properties:
        """Add a generated name where the user gave none."""
        if not self.custom_name or properties.get(self.custom_name):
            return properties
        return {**properties, self.custom_name: context.name(length=self.name_length, lower=self.lower_name)}

    def kept_name(self, made: Made, properties: Properties) -> Properties:
        if self.custom_name and self.custom_name == self.ref and not properties.get(self.custom_name):
            return {self.custom_name: made.physical_id}
        return {}

    def arguments(self, verb: str, properties: Properties) -> dict[str, Any]:
        shape = self._input(verb)
        result: dict[str, Any] = to_shape(shape, properties)
        tags = tag_pairs(properties.get(registry.tag_property(self.type) or "Tags"))
        if "TagSpecifications" in shape.members and tags:
            listed = [{"Key": key, "Value": value} for key, value in tags.items()]
            result["TagSpecifications"] = [{"ResourceType": self.tag_kind, "Tags": listed}]
        given = {squeezed(key): value for key, value in properties.items()}
        for required in shape.required_members:
            for key in (f"{self.noun}{required}", required.removeprefix(self.noun)):
                if required not in result and squeezed(key) in given:
                    result[required] = to_shape(shape.members[required], given[squeezed(key)])
        return result

    def update_arguments(
        self, made: Made, properties: Properties, old: Properties, changed: set[str]
    ) -> dict[str, Any] | None:
        """Return the input of the update operation; None if it takes no changed property."""
        operation, shape = self.operations["update"], self._input("update")
        assert operation is not None
        whole = operation.name.startswith("Put")
        sent = {key: value for key, value in properties.items() if whole or key in changed}
        arguments = self.arguments("update", sent)
        if not arguments or not {squeezed(key) for key in changed} & members(shape).keys():
            return None
        required = {squeezed(name) for name in shape.required_members}
        needed = {key: value for key, value in properties.items() if squeezed(key) in required}
        return {**to_shape(shape, needed), **arguments, **self.identity("update", made, properties)}

    def identity(self, verb: str, made: Made, properties: Properties) -> dict[str, Any]:
        """Return the members of an operation's input that identify the resource."""
        values: dict[str, Any] = {}
        for name in self.identifiers:
            value = made.attributes.get(name, properties.get(name))
            value = made.physical_id if value is None or name == self.ref else value
            for alias in (name, f"{self.noun}{name}", *self.aliases):
                values[squeezed(alias)] = value
        shape = self._input(verb)
        result: dict[str, Any] = {}
        for name, member in shape.members.items():
            if squeezed(name) in values:
                result[name] = to_shape(member, values[squeezed(name)])
            elif isinstance(member, ListShape) and squeezed(name).removesuffix("s") in values:
                result[name] = [values[squeezed(name).removesuffix("s")]]
        return result

    def unsettable(self, verb: str, properties: Properties, old: Properties) -> list[str]:
        operation = self.operations[verb]
        shape, lost = operation.input_shape if operation is not None else None, LostProperties()
        tags = {registry.tag_property(self.type), "Tags"}
        properties = {key: value for key, value in properties.items() if key not in tags}
        if isinstance(shape, StructureShape):
            to_shape(shape, properties, lost)
            renamed = [{f"{self.noun}{name}", name.removeprefix(self.noun)} for name in shape.required_members]
            aliases = set[str]().union(*renamed)
        else:
            lost.paths, aliases = list(properties), set()
        carried = self.elsewhere | aliases
        return sorted(
            path
            for path in set(lost.paths)
            if path not in carried
            and path.partition("/")[0] not in carried
            and registry.value_at(properties, path) != registry.value_at(old, path)
        )

    def found_id(self, response: Mapping[str, Any], properties: Properties) -> str:
        """Return the value of Ref, from the create operation's response or the properties."""
        if not self.ref:
            return "|".join(str(properties[name]) for name in self.identifiers)
        inside = unwrapped(response, self.noun)
        for source in (response, inside):
            value = pick(source, *self.spellings(self.ref))
            value = value[0] if isinstance(value, list) and value else value
            if isinstance(value, str):
                return value
        ids = next(
            (value for key, value in response.items() if squeezed(key) == squeezed(f"{self.noun}{self.ref}s")), None
        )
        if ids:
            return str(ids[0])
        if self.ref in properties:
            return str(properties[self.ref])
        raise ResourceError(f"{self.type}: the answer of the create operation names no {self.ref}")

    def found(self, description: Mapping[str, Any], properties: Properties) -> dict[str, Any]:
        result: dict[str, Any] = {}
        for path in registry.paths(self.type, "readOnlyProperties"):
            if "*" in path:
                continue
            value: Any = description
            for depth, part in enumerate(path.split("/")):
                if not isinstance(value, Mapping):
                    value = None
                    break
                value = pick(value, *self.spellings(part)) if depth == 0 else pick(value, part)
            if value is None and "/" not in path:
                value = pick(unwrapped(description, self.noun), *self.spellings(path))
            if value is not None:
                result[path.replace("/", ".")] = value if isinstance(value, (str, int, float, list)) else str(value)
        return result

    def status(self, description: Mapping[str, Any]) -> str:
        """Return the status in upper case without punctuation, or ""."""
        value = next((item for key, item in description.items() if self._has_status(key)), None)
        value = pick(description, "State", "Lifecycle") if value is None else value
        value = value.get("statusCode") if isinstance(value, Mapping) else value
        return squeezed(value).upper() if isinstance(value, str) else ""

    def _has_status(self, key: str) -> bool:
        name = squeezed(key)
        return name.endswith("status") and squeezed(self.noun).endswith(name.removesuffix("status"))

    def _input(self, verb: str) -> StructureShape:
        operation = self.operations[verb]
        if operation is None:
            raise ResourceError(f"{self.type}: the service {self.service} has no operation to {verb} it")
        return operation.input_shape


def tag_pairs(tags: Any) -> dict[str, str]:
    if isinstance(tags, Mapping):
        return dict(tags)
    return {tag["Key"]: tag["Value"] for tag in tags or []}
