"""Attributes that are one property each, and items of such attributes, read by the paths in the model's fields."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from types import NoneType, UnionType
from typing import Any, TypeVar, get_args, get_type_hints

from holdfast.catalog import Property, property_in
from holdfast.validation.cloudformation import UNRESOLVED, Node, optional, required
from holdfast.validation.model import Item

READ = (bool, int, str, tuple[str, ...])
"""Plain attributes. Items with other attributes, too, have readers of their own."""
T = TypeVar("T", bound=Item)


@dataclass(frozen=True, kw_only=True)
class _Attribute:
    property: Property
    kind: Any
    optional: bool

    def read(self, node: Node) -> Any:
        if (item := _described(self.kind)) is not None:
            return (optional if self.kind is item else each_of)(node, lambda found: read_item(item, found))
        default = self.property.default
        if self.kind == tuple[str, ...]:
            return node.strings()
        if self.kind is bool:
            return node.boolean(default=bool(default))
        value = node.integer() if self.kind is int else node.text()
        if default is not None:
            value = value or default
        return value if self.optional else required(value)


def read_properties(kind: type[Item], properties: Node) -> dict[str, Any]:
    return {
        name: attribute.read(properties.get(*attribute.property.path.split(".")))
        for name, attribute in _attributes(kind).items()
        if attribute.kind in READ or _described(attribute.kind) is not None
    }


def read_item(kind: type[T], node: Node, **others: Any) -> T:
    """Item at a node; ``others`` are attributes that are not one property."""
    return kind(**{"path": node.path, "places": places_of(kind, node.path), **read_properties(kind, node), **others})


def each_of(node: Node, read: Callable[[Node], Any]) -> Any:
    """Item per entry; UNRESOLVED if an entry is a function that may return none."""
    entries = node.items()
    if entries is None or any(entry.keys() is None for entry in entries):
        return UNRESOLVED
    return tuple(read(entry) for entry in entries)


def places_of(kind: type[Item], path: str) -> dict[str, str]:
    return {name: f"{path}.{attribute.property.path}" for name, attribute in _attributes(kind).items()}


_ATTRIBUTES: dict[type[Item], Mapping[str, _Attribute]] = {}


def _attributes(kind: type[Item]) -> Mapping[str, _Attribute]:
    if kind not in _ATTRIBUTES:
        _ATTRIBUTES[kind] = _found(kind)
    return _ATTRIBUTES[kind]


def _described(annotation: Any) -> type[Item] | None:
    """Item of an attribute, or of its list, if each of its own attributes is one property."""
    kind = get_args(annotation)[0] if get_args(annotation)[1:] == (...,) else annotation
    if not (isinstance(kind, type) and issubclass(kind, Item)):
        return None
    return kind if {field.name for field in fields(kind)} == {"path", "places", *_attributes(kind)} else None


def _found(kind: type[Item]) -> Mapping[str, _Attribute]:
    hints = get_type_hints(kind, include_extras=True)
    found = {field.name: property_in(hints[field.name]) for field in fields(kind)}
    return {name: _attribute(hints[name], each) for name, each in found.items() if each is not None}


def _attribute(annotation: Any, found: Property) -> _Attribute:
    held = get_args(annotation)[0]
    types = get_args(held) if isinstance(held, UnionType) else (held,)
    kind = next(each for each in types if each is not NoneType)
    return _Attribute(property=found, kind=kind, optional=NoneType in types)
