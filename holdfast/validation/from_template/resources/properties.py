"""Attributes that are one property each, read by the paths in the model's fields."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from types import NoneType, UnionType
from typing import Any, get_args, get_type_hints

from holdfast.catalog import Property, property_in
from holdfast.validation.cloudformation import Node, required
from holdfast.validation.model import Item

READ = (bool, int, str, tuple[str, ...])
"""Readers by type of attribute. Attributes with more structure have readers of their own."""


@dataclass(frozen=True, kw_only=True)
class _Attribute:
    property: Property
    type: Any
    optional: bool

    def read(self, node: Node) -> Any:
        default = self.property.default
        if self.type == tuple[str, ...]:
            return node.strings()
        if self.type is bool:
            return node.boolean(default=bool(default))
        value = node.integer() if self.type is int else node.text()
        if default is not None:
            value = value or default
        return value if self.optional else required(value)


def read_properties(kind: type[Item], properties: Node) -> dict[str, Any]:
    return {
        name: attribute.read(properties.get(*attribute.property.path.split(".")))
        for name, attribute in _attributes(kind).items()
        if attribute.type in READ
    }


def places_of(kind: type[Item], path: str) -> dict[str, str]:
    return {name: f"{path}.{attribute.property.path}" for name, attribute in _attributes(kind).items()}


_ATTRIBUTES: dict[type[Item], Mapping[str, _Attribute]] = {}


def _attributes(kind: type[Item]) -> Mapping[str, _Attribute]:
    if kind not in _ATTRIBUTES:
        _ATTRIBUTES[kind] = _found(kind)
    return _ATTRIBUTES[kind]


def _found(kind: type[Item]) -> Mapping[str, _Attribute]:
    hints = get_type_hints(kind, include_extras=True)
    found = {field.name: property_in(hints[field.name]) for field in fields(kind)}
    return {name: _attribute(hints[name], each) for name, each in found.items() if each is not None}


def _attribute(annotation: Any, found: Property) -> _Attribute:
    held = get_args(annotation)[0]
    types = get_args(held) if isinstance(held, UnionType) else (held,)
    kind = next(each for each in types if each is not NoneType)
    return _Attribute(property=found, type=kind, optional=NoneType in types)
